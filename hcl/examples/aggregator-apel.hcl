# An aggregator that reports two sites to APEL, EGI's accounting.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

action "apel" "egi" {
  schedule = "30 4 * * *" # every day, UTC
  config {
    # The first month of which all records are here: what is sent replaces what the
    # receiver has of a month.
    from = "2026-11"

    site "UNI-EXAMPLE" { # the name in GOCDB
      ids = ["nemo", "nemo-slurm"]
    }
    site "UNI-EXAMPLE-T3" {}

    fields {
      VO = lookupprefix({
        "/atlas"    = "atlas"
        "/belle"    = "belle"
        "/cms"      = "cms"
        "/cms/dcms" = "cms.de"
      }, try(record.meta.voms[0], ""), "local")
      VORole                    = regex("Role=([^/]+)", record.meta.voms[0])[0]
      SubmitHost                = try(record.meta.headnode[0], "${record.site}-login")
      Infrastructure            = "grid"
      InfrastructureDescription = "BURSAR-SLURM"
    }

    # Scores by class of nodes; without a score, that of the component Cores.
    benchmark "HEPscore23" {
      score = lookup({ gpu = 21.5, bigmem = 17.2 }, record.meta.partition[0], 14.8)
    }

    sign {
      cert = "/etc/grid-security/hostcert.pem"
      key  = "/etc/grid-security/hostkey.pem"
    }
    ams {
      host = "msg.argo.grnet.gr"
      ca   = "/etc/grid-security/ca-bundle.pem"
    }
  }
}
