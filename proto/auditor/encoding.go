package auditor

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// decoderRoom bounds what a decoder remembers of what it gave, in bytes.
const decoderRoom = 8 << 20

// decompressBody undoes a content encoding.
func decompressBody(encoding string, body io.Reader) (r io.Reader, closer func(), err error) {
	nothing := func() {}
	switch encoding {
	case "", "identity":
		return body, nothing, nil
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bufio.NewReader(body))
	case "deflate":
		r, err = zlib.NewReader(bufio.NewReader(body))
	case "br":
		r = brotli.NewReader(body)
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(decoderRoom))
		if err != nil {
			return nil, nothing, err
		}
		return z, z.Close, nil
	default:
		err = fmt.Errorf("content encoding %q is not supported; use gzip, br, zstd or deflate", encoding)
	}
	return r, nothing, err
}
