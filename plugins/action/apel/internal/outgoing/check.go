package outgoing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNotFound reports that the directory of the queue does not exist.
var ErrNotFound = errors.New("directory not found")

// What is done with a path, as in its mode.
const (
	read  = 4
	write = 2
	enter = 1
)

// Check says why SSM could not take elements that Add makes: it enters and changes the
// queue and its folders, and reads an element and makes a second link to it, which the
// kernel allows only to users who can write to it. Where an access control list decides, or root asks
// for a daemon that has another group, or SSM's user is not known, nothing is said that
// may be wrong.
func (q Queue) Check() error {
	info, err := os.Stat(q.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", q.Path, ErrNotFound)
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", q.Path)
	case hasACL(q.Path):
		return nil
	}
	st := info.Sys().(*syscall.Stat_t)
	queue := object{st.Uid, st.Gid, info.Mode()}
	we, err := currentAccount()
	if err != nil {
		return err
	}
	if !we.mayAccess(queue, read|write|enter) {
		return fmt.Errorf("user %s cannot write to %s (%s)", we.name, q.Path, queue)
	}
	made := object{we.uid, we.gids[0], q.Mode}
	if info.Mode()&fs.ModeSetgid != 0 {
		made.gid = queue.gid
	}
	if q.Group != "" {
		if made.gid, err = groupID(q.Group); err != nil {
			return err
		}
		if made.gid != queue.gid && !slices.Contains(we.gids, made.gid) && we.uid != 0 {
			return fmt.Errorf("user %s is not in the group %s", we.name, q.Group)
		}
	}
	ssm, known, err := q.ssmAccount(queue, we)
	if err != nil {
		return err
	}
	if !known || we.uid == 0 && q.Group == "" && info.Mode()&fs.ModeSetgid == 0 {
		if q.Mode&0o077 == 0 {
			return fmt.Errorf("only user %[2]s can take messages: new folders are %[1]s", made, we.name)
		}
		return nil
	}
	element := object{made.uid, made.gid, q.fileMode()}
	switch {
	case !ssm.mayAccess(queue, read|write|enter):
		return fmt.Errorf("SSM user %s cannot write to %s (%s)", ssm.name, q.Path, queue)
	case !ssm.mayAccess(made, read|write|enter):
		return fmt.Errorf("SSM user %s cannot take messages: new folders are %s", ssm.name, made)
	case !ssm.mayAccess(element, read|write):
		return fmt.Errorf("SSM user %s cannot lock messages, which requires write permission: new messages are %s", ssm.name, element)
	}
	return nil
}

// hasACL reports whether a path has an access control list.
func hasACL(path string) bool {
	for _, name := range []string{"system.posix_acl_access", "system.posix_acl_default"} {
		if n, err := syscall.Getxattr(path, name, nil); err == nil && n > 0 {
			return true
		}
	}
	return false
}

// object is what rights are asked of.
type object struct {
	uid, gid uint32
	mode     fs.FileMode
}

// String is "0770 bursar:apel".
func (o object) String() string {
	owner, group := strconv.Itoa(int(o.uid)), strconv.Itoa(int(o.gid))
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	return fmt.Sprintf("%04o %s:%s", o.mode.Perm(), owner, group)
}

// account is a user with his groups, of which the first is that of what he makes.
type account struct {
	name string
	uid  uint32
	gids []uint32
}

func (a account) mayAccess(o object, want fs.FileMode) bool {
	rights := o.mode.Perm()
	switch {
	case a.uid == 0:
		return true
	case a.uid == o.uid:
		rights >>= 6
	case slices.Contains(a.gids, o.gid):
		rights >>= 3
	}
	return rights&want == want
}

// currentAccount is the account that makes elements.
func currentAccount() (account, error) {
	gids, err := os.Getgroups()
	a := account{name: strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gids: []uint32{uint32(os.Getegid())}}
	for _, g := range gids {
		a.gids = append(a.gids, uint32(g))
	}
	if u, err := user.LookupId(a.name); err == nil {
		a.name = u.Username
	}
	return a, err
}

// ssmAccount is the account that SSM runs as; false where that is not known: the owner of the
// queue may be the daemon, who is another one than root.
func (q Queue) ssmAccount(queue object, we account) (a account, known bool, err error) {
	if q.User != "" {
		a, err = accountOf(user.Lookup(q.User))
		return a, err == nil, err
	}
	if queue.uid == 0 || we.uid == 0 || queue.uid == we.uid {
		return account{}, false, nil
	}
	a, err = accountOf(user.LookupId(strconv.Itoa(int(queue.uid))))
	return a, err == nil, nil
}

func accountOf(u *user.User, err error) (account, error) {
	if err != nil {
		return account{}, err
	}
	uid, bad := strconv.ParseUint(u.Uid, 10, 32)
	gid, worse := strconv.ParseUint(u.Gid, 10, 32)
	a := account{name: u.Username, uid: uint32(uid), gids: []uint32{uint32(gid)}}
	for _, text := range groupsOf(u) {
		if id, err := strconv.ParseUint(text, 10, 32); err == nil {
			a.gids = append(a.gids, uint32(id))
		}
	}
	return a, errors.Join(bad, worse)
}

// patience is how long a directory service may take to say who is in which groups.
const patience = 5 * time.Second

// groupsOf are the groups of a user as the system has them, of which /etc/group may have
// only some.
func groupsOf(u *user.User) []string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "id", "-G", u.Username).Output(); err == nil {
		return strings.Fields(string(out))
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil
	}
	return groups
}

// groupID is the number of a group, which may be named by it.
func groupID(name string) (uint32, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(id), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, err
	}
	id, err := strconv.ParseUint(g.Gid, 10, 32)
	return uint32(id), err
}
