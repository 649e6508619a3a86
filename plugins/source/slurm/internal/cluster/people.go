package cluster

import (
	"errors"
	"io"
	"strings"
)

// Association says that a user may charge an account of a cluster.
type Association struct {
	Cluster, User, Account string
}

// ReadAssociations reads what sacctmgr prints of cluster, user and account; those
// of accounts, which have no user, are left out.
func ReadAssociations(r io.Reader) ([]Association, error) {
	var out []Association
	err := eachLine(r, func(line string) error {
		f, ok, err := splitRow(line, 3)
		if ok && f[1] != "" && f[2] != "" {
			out = append(out, Association{Cluster: f[0], User: f[1], Account: f[2]})
		}
		return err
	})
	return out, err
}

// ReadClusterName finds the cluster's name in what scontrol show config prints.
func ReadClusterName(r io.Reader) (string, error) {
	name := ""
	err := eachLine(r, func(line string) error {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "ClusterName" && name == "" {
			name = strings.TrimSpace(value)
		}
		return nil
	})
	if err == nil && name == "" {
		err = errors.New("there is no ClusterName in the output")
	}
	return name, err
}
