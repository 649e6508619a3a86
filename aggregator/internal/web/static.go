package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed static
var staticFiles embed.FS

// assets are the files that pages load, by name.
type assets map[string]*asset

// asset is a file with what is known of its content.
type asset struct {
	body    []byte
	version string // of its content
	typ     string
	packed  func() []byte // with gzip; nil when that is no shorter
}

// versionDigits is how much of the content's hash names a version.
const versionDigits = 16

func readAssets() assets {
	list := assets{}
	entries, err := fs.ReadDir(staticFiles, "static")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range entries {
		body, err := fs.ReadFile(staticFiles, "static/"+e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(body)
		list[e.Name()] = &asset{
			body: body, version: hex.EncodeToString(sum[:])[:versionDigits], typ: typeOf(e.Name()),
			packed: sync.OnceValue(func() []byte { return gzipBody(body) }),
		}
	}
	return list
}

// typeOf does not ask the machine, which may call a script a text.
func typeOf(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".txt", ".md":
		return "text/plain; charset=utf-8"
	default:
		return mime.TypeByExtension(ext)
	}
}

func gzipBody(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil || out.Len() >= len(body) {
		return nil
	}
	return out.Bytes()
}

// assetAddress is where a file is, with the version of its content: what is there never
// changes. It is empty for a file that is not there.
func (a assets) assetAddress(name string) string {
	if a[name] == nil {
		return ""
	}
	return "/ui/static/" + name + "?v=" + a[name].version
}

// How long a browser keeps a file, in seconds.
const (
	never   = "no-store"
	briefly = "public, max-age=300"
	forever = "public, max-age=31536000, immutable"
)

// ServeHTTP answers with the file of the path's value "file".
func (a assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	head := w.Header()
	f := a[name]
	if f == nil {
		head.Set("Cache-Control", never) // another node may have it already
		http.NotFound(w, r)
		return
	}
	switch r.URL.Query().Get("v") {
	case f.version:
		head.Set("Cache-Control", forever)
	case "":
	default: // what another node has under that address
		head.Set("Cache-Control", never)
	}
	head.Set("Content-Type", f.typ)
	head.Add("Vary", "Accept-Encoding")
	body, tag := f.body, f.version
	if packed := f.packed(); packed != nil && acceptsGzip(r.Header.Values("Accept-Encoding")) {
		body, tag = packed, f.version+"-gzip"
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether the header Accept-Encoding allows gzip.
func acceptsGzip(accept []string) bool {
	takes, named := false, false
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		coding, parameter, _ := strings.Cut(part, ";")
		coding = strings.ToLower(strings.TrimSpace(coding))
		quality, found := strings.CutPrefix(strings.ReplaceAll(parameter, " ", ""), "q=")
		q, err := strconv.ParseFloat(quality, 64)
		allowed := !found || err == nil && q > 0
		switch {
		case coding == "gzip" || coding == "x-gzip":
			takes, named = allowed, true
		case coding == "*" && !named:
			takes = allowed
		}
	}
	return takes
}
