//go:build !linux

package control

func through(path string) (near string, done func(), err error) {
	return path, func() {}, nil
}
