# Demo of bursar dev: what is wrong on purpose. On one day of the recording, collecting
# failed and runs are missing (`bursar completeness`, `bursar gaps`), and three jobs have a
# negative CPU time and are quarantined (`bursar quarantine list`). `bursar status` would
# ask for something to be done about each; here they are acknowledged, so that it is
# healthy until something else happens. Without these blocks it needs attention.

health {
  acknowledge "quarantine" {
    count  = 3
    reason = "demo"
  }
  acknowledge "gaps" {
    count  = 1
    reason = "demo"
  }
  acknowledge "runs-missing" {
    about  = "dev/replay/recorded @FAILED@"
    count  = 3
    reason = "demo"
  }
}
