# Settings of bursar-epilog, name = "value", a line each; bursar-epilog -h lists all.
# Nothing is needed where the agent runs on this machine.

# Where the agent is on another one: its plugin's address, and this machine's
# certificate, that of a client named bursar-epilog.
#
# address = "head1.example.org:7071"
# ca      = "/etc/bursar/tls/ca.pem"
# cert    = "/etc/bursar/tls/epilog.pem"
# key     = "/etc/bursar/tls/epilog.key"
