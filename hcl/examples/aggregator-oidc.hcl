# People log in to the pages at a provider of OpenID Connect, such as Keycloak. The provider
# must know the address https://HOST:PORT/ui/login/callback of each node.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
  api {
    tls_listen = ["0.0.0.0:8443"]
  }
  tls {
    ca   = "/etc/bursar/tls/ca.pem"
    cert = "/etc/bursar/tls/agg1.pem"
    key  = "/etc/bursar/tls/agg1.key"
  }
}

access {
  # Pages of this origin may show /ui/widget, the reader's own usage, in a frame.
  widget_origins = ["https://ood.example.org"]

  # The page Usage offers this view to everyone by its name. The address is that in the browser,
  # without the server; the page itself shows the block to who operates the cluster.
  view "Users of atlas, this month" {
    address = "/ui/usage?by=user_id&where[group_id]=atlas&window=this-month"
  }

  oidc {
    issuer        = "https://sso.example.org/realms/hpc"
    client_id     = "bursar"
    client_secret = env("BURSAR_OIDC_SECRET", "the secret of the client") # or file("…")

    scopes       = ["profile", "groups"]    # beside openid; default: profile
    user_claim   = "preferred_username"     # the user as records name it
    groups_claim = "groups"

    # The first block that names a group of someone counts.
    group "hpc-admins" { roles = ["operate"] }
    group "atlas-managers" {
      roles = ["read"]
      rows  = [{ group_id = ["atlas"] }]
    }

    # Everyone else whom the provider knows sees their own records, and those of the
    # projects and groups that they lead by the directory.
    group "*" {
      roles = ["read"]
      own   = true
    }
  }
}
