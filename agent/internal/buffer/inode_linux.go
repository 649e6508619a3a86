package buffer

import (
	"fmt"
	"os"
	"syscall"
)

// inode names the file on its device; "" when that cannot be told.
func inode(path string) string {
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
