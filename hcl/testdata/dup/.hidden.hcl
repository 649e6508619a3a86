hidden = 1
