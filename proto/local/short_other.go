//go:build !linux

package local

func throughFolder(path string) (near string, done func(), err error) {
	return path, func() {}, nil
}
