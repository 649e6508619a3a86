# An aggregator that mails reports: to the heads of the site what all used, and to each
# principal investigator a statement of their own.
aggregator {
  name     = "agg1"
  data_dir = "/var/lib/bursar"
}

# Names, addresses and projects of people; aggregator-directory.hcl has more.
person "bell" {
  name  = "A. Bell"
  email = "bell@example.org"
}

project "bell-labs" {
  pi     = "bell"
  groups = ["bellgrp"]
}

# Each day it sends what has not been sent: on the first of a month the month before to
# all, and later on to those whose address was added since.
action "report" "heads" {
  schedule = "0 7 * * *"
  zone     = "Europe/Berlin" # of the schedule
  config {
    report = "usage"
    period = ["last-month", "last-year"] # side by side
    zone   = "Europe/Berlin"             # of the report
    query  = { by = "group_id", top = "20" }
    to     = ["Head of Computing <head@example.org>", "board@example.org"]
    attach = ["csv", "html"]
    site { # a page for each month, too
      directory = "/srv/www/reports"
      url       = "https://www.example.org/reports/"
    }
    mail {
      from          = "Accounting <accounting@example.org>"
      reply_to      = "help@example.org"
      host          = "smtp.example.org"
      user          = "bursar"
      password_file = "/etc/bursar/mail.password"
    }
  }
}

action "report" "statements" {
  schedule = "0 7 * * *"
  zone     = "Europe/Berlin"
  config {
    report        = "statement"
    zone          = "Europe/Berlin"
    each          = "pi"
    without_usage = "note"
    recipient "bell" { to = ["bell@example.org", "secretary@example.org"] } # in the place of that of the person
    mail {
      from = "Accounting <accounting@example.org>"
      host = "localhost" # the mail server of this machine
      tls  = "none"
    }
  }
}
