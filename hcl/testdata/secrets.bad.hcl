agent {
  name     = "a"
  data_dir = "/d"
  listen   = file("secret.txt")
  workers  = seconds(file("secret.txt"))
  mode     = "x${file("secret.txt")}y"
  tags     = [for s in split(",", file("secret.txt")) : tonumber(s)]
}
