package source_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/proto/record"
)

type object = map[string]any

// kubernetes is the source kubernetes on the world's API server, with pods as runs, as
// AUDITOR's collector has them.
func (l *lab) kubernetes(w *world) []record.Write {
	said := l.source(record.Origin{Agent: "head1", Type: "kubernetes", Label: label}, record.RankScheduler, plugintest.Block("config", plugintest.Attr("kubeconfig", l.kubeconfig(w)),
		plugintest.Attr("runs", "pods"), plugintest.Attr("capacity", false), plugintest.Attr("census", false)), nothing,
		func(said []record.Write) bool { return len(said) >= len(w.order) })
	for i := range said { // the other party counts whole cores
		for j := range said[i].Record.Components {
			if c := &said[i].Record.Components[j]; c.Name == "MilliCores" {
				c.Name, c.Amount = "Cores", c.Amount/1000
			}
		}
	}
	return said
}

// kubeconfig starts an API server that has the world's pods.
func (l *lab) kubeconfig(w *world) string {
	l.t.Helper()
	var pods []object
	for _, r := range w.order {
		parts := strings.SplitN(r.job, "-", 3)
		pods = append(pods, object{
			"metadata": object{"namespace": parts[0], "name": parts[1], "uid": parts[2], "resourceVersion": "7", "creationTimestamp": r.submit.String(), "labels": object{"user": r.user}},
			"spec":     object{"containers": []object{{"name": "main", "resources": object{"requests": object{"cpu": fmt.Sprint(r.cores)}}}}},
			"status": object{"phase": "Succeeded", "startTime": r.start.String(), "containerStatuses": []object{{"name": "main",
				"state": object{"terminated": object{"startedAt": r.start.String(), "finishedAt": r.stop.String()}}}}},
		})
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		switch {
		case in.URL.Query().Has("watch"):
			<-in.Context().Done()
		case in.URL.Path == "/api/v1/pods":
			_ = json.NewEncoder(out).Encode(object{"metadata": object{"resourceVersion": "9"}, "items": pods}) // to a client that may be gone
		default:
			_ = json.NewEncoder(out).Encode(object{"metadata": object{"resourceVersion": "9"}, "items": []object{}})
		}
	}))
	l.t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	text, err := json.Marshal(object{"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": []object{{"name": "u", "user": object{}}},
		"clusters": []object{{"name": "k", "cluster": object{"server": server.URL, "certificate-authority-data": ca}}},
		"contexts": []object{{"name": "c", "context": object{"cluster": "k", "user": "u"}}}})
	if err != nil {
		l.t.Fatal(err)
	}
	path := filepath.Join(l.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}
