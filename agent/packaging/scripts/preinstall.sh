#!/bin/sh
# Files of this package belong to its user, who therefore has to be there first.
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then
	systemd-sysusers --replace=/usr/lib/sysusers.d/@PACKAGE@.conf - <<'END'
@SYSUSERS@
END
	exit 0
fi
getent group @USER@ >/dev/null || groupadd -r @USER@
getent passwd @USER@ >/dev/null || useradd -r -g @USER@ -d /var/lib/@PACKAGE@ -s /usr/sbin/nologin @USER@
