//go:build !linux

package local

func through(path string) (near string, done func(), err error) {
	return path, func() {}, nil
}
