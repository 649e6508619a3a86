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
	err := lines(r, func(line string) error {
		f, ok, err := row(line, 3)
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
	err := lines(r, func(line string) error {
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

// ReadNames reads the names of users from lines of passwd: the GECOS field up to
// its first comma. Users without a name are left out.
func ReadNames(r io.Reader) (map[string]string, error) {
	names := map[string]string{}
	err := lines(r, func(line string) error {
		f := strings.Split(line, ":")
		if len(f) < 7 {
			return nil
		}
		name, _, _ := strings.Cut(f[4], ",")
		if name = strings.TrimSpace(name); name != "" {
			names[f[0]] = name
		}
		return nil
	})
	return names, err
}
