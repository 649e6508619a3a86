agent {
  name = "a
  data_dir = "/d"
}
