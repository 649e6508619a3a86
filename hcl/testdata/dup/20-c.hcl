a = 3
source "x" "y" { interval = "1s" }
