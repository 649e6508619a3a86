//go:build !linux

package host

import "os"

const pathOnly = os.O_RDONLY

func restrainProcess(int) {}
