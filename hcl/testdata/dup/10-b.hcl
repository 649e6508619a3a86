b = 2
source "x" "y" { interval = "1s" }
