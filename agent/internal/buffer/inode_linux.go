package buffer

import (
	"fmt"
	"os"
	"syscall"
)

// inodeOf names the file on its device; "" when that cannot be told.
func inodeOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
