#!/bin/bash
# Installs what the end-to-end tests need on a Debian 12 machine: Slurm 22.05 on the
# host, Slurm 24.11 in a chroot of Debian 13, MariaDB, PostgreSQL 15, Exim 4,
# Grid Engine 8.1.9, HTCondor 23.9 in another chroot of Debian 13, a Python environment with the clients that
# bursar must keep working, a Debian 12 with systemd, rpm and dnf to install packages on,
# a Nomad 1.11.3 that is built from its source with the Go of the machine, the API server
# of Kubernetes 1.35.4 with etcd and kwok that are built likewise, as are versitygw, a server of
# S3, and a provider of OpenID Connect, Chromium with axe-core, and Prometheus. Debian's
# ClickHouse and ZooKeeper are unpacked, and not installed; chDB is the engine of a current one. AUDITOR 0.11.2
# itself is built from its crate and needs a Rust of 2025.
#
#   e2e/setup.sh                 everything
#   e2e/setup.sh host chroot     only these parts (host, postgres, chroot, gridengine, htcondor, python, packages, nomad,
#                                kubernetes, browser, s3, oidc, clickhouse, auditor)
#   e2e/setup.sh -where          print the cache directory and stop
#
# Run as root. It can be run again at any time and is quick when all is there. No
# service is started or enabled. What is not a Debian package of the host goes to
#   ${BURSAR_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bursar-e2e}
# The chroot comes from the mirror that apt is configured for; BURSAR_E2E_MIRROR
# names another.
set -euo pipefail

cache=${BURSAR_E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/bursar-e2e}

host_packages=(
  slurm-wlm slurmctld slurmd slurmdbd slurm-client munge mariadb-server
  debootstrap exim4-daemon-light iproute2 openssl postgresql-15 procps prometheus-alertmanager python3-venv
)
gridengine_packages=(gridengine-master gridengine-exec gridengine-client)
chroot_suite=trixie
chroot_packages=(slurmctld slurmd slurmdbd slurm-client munge mariadb-server procps python3)
# HTCondor has a root of its own: a pool is a copy of nothing, and its users are the rig's.
condor_packages=(minicondor procps python3)
# The machine that packages are installed on: a head node that has the commands of
# Slurm and nothing of bursar.
machine_suite=bookworm
machine_packages=(systemd dbus procps passwd munge slurm-client rpm dnf)
python_packages=(python-auditor==0.11.0 tzlocal auditor-htcondor-collector==0.11.0)
# AUDITOR's plugins for APEL and for utilization, of which the second one brings pandas.
plugin_packages=(auditor-apel-plugin==0.11.0 auditor-utilization-plugin==0.11.0)
# TARDIS wants a client of its own version.
tardis_packages=(cobald-tardis==0.9.0)
# What reads Parquet files and workbooks beside bursar.
lake_packages=(pyarrow==26.0.1 duckdb==2.0.0 openpyxl==3.1.5)
# What looks at the pages: a browser, what finds faults of accessibility in them, a
# Prometheus for rules and dashboards, and the language in which dashboards ask for
# usage. From npm come axe-core (MPL-2.0) and jsonata (MIT), for tests only; their
# versions are in e2e/pages/axe.go, too.
browser_packages=(chromium fonts-dejavu-core prometheus)
npm_packages=(
  "axe-core 4.14.1 axe.min.js e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"
  "jsonata 2.2.2 jsonata.min.js 4104555ad7118ce645a506be1ccef12e17812f7e4f38793be29b51ef759307fa"
)
# Nomad is for tests only and never shipped (its licence is BUSL-1.1). The zip of its
# module lacks the nested module api, which its go.mod replaces by a folder.
nomad_version=1.11.3
nomad_api=v0.0.0-20260324203407-b27b0c2e019a
# The parts of Kubernetes that a control plane without containers needs: its API server,
# etcd, and kwok, which plays the kubelet of every node. The etcd of Debian 12 does not
# deliver what this API server watches.
kubernetes_version=1.35.4
etcd_version=3.6.16
kwok_version=0.7.0
# A server of S3.
versitygw_version=1.8.0
# Debian's ClickHouse: the oldest whose SQL the warehouse speaks.
clickhouse_version=18.16.1
# Debian's ZooKeeper, where its replicas meet, with what it loads.
zookeeper_version=3.8.0
zookeeper_packages=(libzookeeper-java libcommons-cli-java libslf4j-java libdropwizard-metrics-java libsnappy-java)
java_package=openjdk-17-jre-headless
# The engine of a current ClickHouse as a library, without what turns answers into data frames.
chdb_packages=(--no-deps chdb-core==26.9.0)
# Types that Grafana Labs makes from Grafana's schema, to read dashboards with.
grafana_packages=("grafana-foundation-sdk==1769699379!11.6.0")
# A provider of OpenID Connect.
oidc_version=3.51.17
# The AUDITOR that bursar replaces, for a suite that is only run when it is asked for.
auditor_version=0.11.2

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

say() { printf '%s\n' "e2e/setup: $*" >&2; }
die() { say "$*"; exit 1; }

# --- services stay down ---------------------------------------------------------

# deny_services DIR: packages installed below DIR start nothing, until allow_services.
deny_services() {
  local policy=$1/usr/sbin/policy-rc.d
  if [ -e "$policy" ]; then mv "$policy" "$policy.bursar-e2e"; fi
  printf '#!/bin/sh\nexit 101\n' > "$policy"
  chmod 755 "$policy"
}

allow_services() {
  local policy=$1/usr/sbin/policy-rc.d
  rm -f "$policy"
  if [ -e "$policy.bursar-e2e" ]; then mv "$policy.bursar-e2e" "$policy"; fi
}

# disable_services PACKAGES: what was just installed does not come up at the next boot
# either. Services of packages that were there before are left as they are.
disable_services() {
  command -v systemctl > /dev/null || return 0
  local p
  for p in "$@"; do
    case $p in
      mariadb-server) systemctl disable mariadb ;;
      postgresql-15) systemctl disable postgresql ;;
      exim4-daemon-light) systemctl disable exim4 ;;
      munge | slurmctld | slurmd | slurmdbd | gridengine-master | gridengine-exec | prometheus | prometheus-alertmanager) systemctl disable "$p" ;;
    esac > /dev/null 2>&1 || true
  done
}

# --- host -----------------------------------------------------------------------

missing() {
  local p
  for p in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2> /dev/null)" = installed ] || printf '%s\n' "$p"
  done
}

apt() { apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" < /dev/null >&2; }

host() { install_on_host "${host_packages[@]}"; }

install_on_host() {
  local want
  mapfile -t want < <(missing "$@")
  [ ${#want[@]} -gt 0 ] || { say "host: all packages are there"; return; }
  say "host: installing ${want[*]}"
  deny_services ""
  trap 'allow_services ""' EXIT
  apt update
  apt install --no-install-recommends "${want[@]}"
  allow_services ""
  trap - EXIT
  disable_services "${want[@]}"
}

# gridengine_part: Debian's package makes a cell when it is told that it may; the rig
# starts copies of it.
gridengine_part() {
  printf '%s\n' \
    "gridengine-master shared/gridenginemaster string localhost" \
    "gridengine-master shared/gridenginecell string default" \
    "gridengine-master shared/gridengineconfig boolean true" \
    "gridengine-client shared/gridenginemaster string localhost" \
    "gridengine-client shared/gridenginecell string default" \
    "gridengine-client shared/gridengineconfig boolean true" | debconf-set-selections
  install_on_host "${gridengine_packages[@]}"
}

# --- chroot ---------------------------------------------------------------------

# mirror: where apt gets Debian itself from, and the keyring it checks it with.
mirror() {
  if [ -n "${BURSAR_E2E_MIRROR:-}" ]; then printf '%s|\n' "$BURSAR_E2E_MIRROR"; return; fi
  apt-get indextargets --format '$(REPO_URI)|$(SIGNED_BY)' \
    'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' | awk 'NR == 1'
}

# apt's own proxy setting holds for debootstrap and for the chroot too.
use_apt_proxy() {
  local proxy
  proxy=$(apt-config dump Acquire::http::Proxy | sed -n 's/.*"\(.*\)";/\1/p')
  if [ -n "$proxy" ]; then export http_proxy=$proxy; fi
}

# build_chroot DIR SUITE PACKAGES, to be run in a mount namespace of its own: the
# mounts go with it.
build_chroot() {
  local dir=$1 suite=$2 uri keyring
  shift 2
  IFS='|' read -r uri keyring < <(mirror)
  [ -n "$uri" ] || { apt update; IFS='|' read -r uri keyring < <(mirror); }
  [ -n "$uri" ] || die "no Debian mirror found in apt's sources; set BURSAR_E2E_MIRROR"
  [ -e "${keyring:-}" ] || keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  use_apt_proxy
  debootstrap --variant=minbase --keyring="$keyring" "$suite" "$dir" "$uri" >&2
  deny_services "$dir"
  if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
    mkdir -p "$dir/etc/ssl/certs"
    cp -L /etc/ssl/certs/ca-certificates.crt "$dir/etc/ssl/certs/"
  fi
  cp -L /etc/resolv.conf /etc/hosts "$dir/etc/" 2> /dev/null || true
  mount -t proc proc "$dir/proc"
  mount --rbind /sys "$dir/sys"
  mount --rbind /dev "$dir/dev"
  chroot "$dir" apt-get -q -y --no-install-recommends install "$@" < /dev/null >&2
  chroot "$dir" apt-get clean
  rm -rf "$dir"/var/lib/apt/lists/*
}

chroot_part() {
  install_on_host debootstrap
  make_chroot "$chroot_suite" "$chroot_suite" "${chroot_packages[@]}"
}

htcondor_part() {
  install_on_host debootstrap
  make_chroot htcondor "$chroot_suite" "${condor_packages[@]}"
}

packages_part() {
  install_on_host debootstrap
  make_chroot "$machine_suite" "$machine_suite" "${machine_packages[@]}"
}

# make_chroot NAME SUITE PACKAGES
make_chroot() {
  local dir=$cache/$1
  shift
  local mark="1 $*"
  if [ "$(cat "$dir/.bursar-e2e" 2> /dev/null)" = "$mark" ]; then say "chroot: $dir is there"; return; fi
  say "chroot: making $dir"
  rm -rf --one-file-system "$dir" "$dir.new"
  unshare --mount --propagation private "$0" -build-chroot "$dir.new" "$@"
  printf '%s\n' "$mark" > "$dir.new/.bursar-e2e"
  mv "$dir.new" "$dir"
}

# --- Python ---------------------------------------------------------------------

# environment DIR IMPORTS PACKAGES…: a Python environment.
environment() {
  local dir=$1 imports=$2
  shift 2
  local mark="1 $*"
  if [ "$(cat "$dir/.bursar-e2e" 2> /dev/null)" = "$mark" ]; then say "python: $dir is there"; return; fi
  say "python: making $dir"
  rm -rf "$dir"
  /usr/bin/python3 -m venv "$dir"
  "$dir/bin/pip" install -q --disable-pip-version-check "$@" >&2
  "$dir/bin/python" -W ignore -c "import $imports"
  printf '%s\n' "$mark" > "$dir/.bursar-e2e"
}

python_part() {
  environment "$cache/python" "pyauditor, tzlocal" "${python_packages[@]}"
  environment "$cache/auditor-plugins" "auditor_apel_plugin.publish, auditor_utilization_plugin.main" "${plugin_packages[@]}"
  environment "$cache/tardis" "tardis.plugins.auditor" "${tardis_packages[@]}"
  environment "$cache/lake" "pyarrow.dataset, duckdb, openpyxl" "${lake_packages[@]}"
}

# --- S3 -------------------------------------------------------------------------

# s3_part: a server of S3 over a folder. Some minutes on two cores.
s3_part() {
  local dir=$cache/versitygw-$versitygw_version
  if [ -e "$dir/versitygw" ]; then say "s3: $dir is there"; return; fi
  command -v go > /dev/null || die "s3: there is no go in PATH"
  say "s3: building $dir"
  mkdir -p "$dir"
  CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=mod GOBIN=$dir/new nice -n 10 \
    go install -p 2 -trimpath -ldflags '-s -w' "github.com/versity/versitygw/cmd/versitygw@v$versitygw_version" >&2
  mv "$dir/new/versitygw" "$dir/versitygw"
}

# --- ClickHouse -----------------------------------------------------------------

# clickhouse_part: Debian's server and ZooKeeper with the libraries that the machine lacks,
# unpacked into the cache: of them only Java is installed. Beside them a current engine, and the
# schema of Grafana, in a Python environment each.
clickhouse_part() {
  local list
  environment "$cache/chdb" "chdb.session" "${chdb_packages[@]}"
  environment "$cache/grafana" "grafana_foundation_sdk.models.dashboard" "${grafana_packages[@]}"
  list=$(apt-get install --simulate --no-install-recommends clickhouse-server | awk '/^Inst / { print $2 }')
  # shellcheck disable=SC2086 # names of packages
  unpack_packages "$cache/clickhouse-$clickhouse_version" usr/sbin/clickhouse-server $list
  install_on_host "$java_package"
  unpack_packages "$cache/zookeeper-$zookeeper_version" usr/share/java/commons-cli.jar "${zookeeper_packages[@]}"
}

# unpack_packages DIR FILE PACKAGES…: Debian packages, of which one has FILE.
unpack_packages() {
  local dir=$1 file=$2 new=$1.new package
  shift 2
  if [ -e "$dir/$file" ]; then say "clickhouse: $dir is there"; return; fi
  say "clickhouse: fetching $dir"
  rm -rf "$new"
  mkdir -p "$new/packages"
  (cd "$new/packages" && apt-get download -qq "$@" >&2)
  for package in "$new"/packages/*.deb; do dpkg -x "$package" "$new"; done
  rm -rf "$new/packages" "$dir"
  mv "$new" "$dir"
}

# --- OpenID Connect -------------------------------------------------------------

# oidc_part: the example server of zitadel/oidc.
oidc_part() {
  local dir=$cache/oidc-$oidc_version
  if [ -e "$dir/server" ]; then say "oidc: $dir is there"; return; fi
  command -v go > /dev/null || die "oidc: there is no go in PATH"
  say "oidc: building $dir"
  mkdir -p "$dir"
  CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=mod GOBIN=$dir/new nice -n 10 \
    go install -p 2 -trimpath -ldflags '-s -w' "github.com/zitadel/oidc/v3/example/server@v$oidc_version" >&2
  mv "$dir/new/server" "$dir/server"
}

# --- Nomad ----------------------------------------------------------------------

# build_nomad DIR: Nomad and its example of a device plugin. Four minutes on two cores.
build_nomad() {
  local dir=$1 module=github.com/hashicorp/nomad@v$nomad_version src=$1/src
  mkdir -p "$dir/plugins"
  (cd "$dir" && go mod download "$module")
  cp -r "$(go env GOMODCACHE)/$module" "$src"
  chmod -R u+w "$src"
  cd "$src"
  go mod edit -dropreplace github.com/hashicorp/nomad/api -require "github.com/hashicorp/nomad/api@$nomad_api"
  export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=mod
  nice -n 10 go build -p 2 -trimpath -buildvcs=false -ldflags '-s -w' -o "$dir/nomad" .
  nice -n 10 go build -p 2 -trimpath -buildvcs=false -o "$dir/plugins/nomad-device-example" ./plugins/device/cmd/example/cmd
  cd /
  rm -rf "$src"
}

nomad_part() {
  local dir=$cache/nomad-$nomad_version
  local mark="1 $nomad_version $nomad_api"
  if [ "$(cat "$dir/.bursar-e2e" 2> /dev/null)" = "$mark" ]; then say "nomad: $dir is there"; return; fi
  command -v go > /dev/null || die "nomad: there is no go in PATH"
  say "nomad: building $dir"
  rm -rf "$dir" "$dir.new"
  (build_nomad "$dir.new") >&2
  "$dir.new/nomad" version >&2
  printf '%s\n' "$mark" > "$dir.new/.bursar-e2e"
  mv "$dir.new" "$dir"
}

# --- Kubernetes -----------------------------------------------------------------

# build_kubernetes DIR: kube-apiserver, etcd and kwok. Half an hour on two busy cores. The
# module k8s.io/kubernetes lacks its staging modules, which its go.mod replaces by folders.
build_kubernetes() {
  local dir=$1 module=k8s.io/kubernetes@v$kubernetes_version src=$1/src name version=k8s.io/component-base/version
  local replace=()
  mkdir -p "$dir/etcd-src"
  export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS=-mod=mod GOWORK=off
  cd "$dir/etcd-src"
  go mod init bursar.invalid/etcd
  go get "go.etcd.io/etcd/server/v3@v$etcd_version"
  nice -n 15 go build -p 2 -trimpath -buildvcs=false -ldflags '-s -w' -o "$dir/etcd" go.etcd.io/etcd/server/v3
  (cd "$dir" && GOBIN=$dir nice -n 15 go install -p 2 -trimpath -ldflags '-s -w' "sigs.k8s.io/kwok/cmd/kwok@v$kwok_version")
  (cd "$dir" && go mod download "$module")
  cp -r "$(go env GOMODCACHE)/$module" "$src"
  chmod -R u+w "$src"
  cd "$src"
  for name in $(sed -n '/^replace (/,/^)/p' go.mod | awk '$2 == "=>" { print $1 }'); do
    replace+=(-replace "$name=$name@v0.${kubernetes_version#1.}")
  done
  go mod edit "${replace[@]}"
  rm -rf go.work vendor
  nice -n 15 go build -p 2 -trimpath -buildvcs=false -ldflags "-s -w -X $version.gitVersion=v$kubernetes_version \
    -X $version.gitMajor=1 -X $version.gitMinor=${kubernetes_version:2:2}" -o "$dir/kube-apiserver" ./cmd/kube-apiserver
  cd /
  rm -rf "$src" "$dir/etcd-src"
}

kubernetes_part() {
  local dir=$cache/kubernetes-$kubernetes_version
  local mark="1 $kubernetes_version $etcd_version $kwok_version"
  if [ "$(cat "$dir/.bursar-e2e" 2> /dev/null)" = "$mark" ]; then say "kubernetes: $dir is there"; return; fi
  command -v go > /dev/null || die "kubernetes: there is no go in PATH"
  say "kubernetes: building $dir"
  rm -rf "$dir" "$dir.new"
  (build_kubernetes "$dir.new") >&2
  "$dir.new/kube-apiserver" --version >&2
  printf '%s\n' "$mark" > "$dir.new/.bursar-e2e"
  mv "$dir.new" "$dir"
}

# --- browser --------------------------------------------------------------------

browser_part() {
  local package
  install_on_host "${browser_packages[@]}"
  for package in "${npm_packages[@]}"; do
    # shellcheck disable=SC2086 # four words
    fetch_npm $package
  done
}

# fetch_npm NAME VERSION FILE SHA256: one file of a package of npm, of which no script is run.
fetch_npm() {
  local name=$1 version=$2 file=$3 sum=$4 dir=$cache/$1-$2
  if [ -e "$dir/$file" ]; then say "$name: $dir is there"; return; fi
  command -v npm > /dev/null || install_on_host npm
  say "$name: fetching $dir"
  rm -rf "$dir.new"
  mkdir -p "$dir.new"
  (cd "$dir.new" && npm pack --silent --ignore-scripts "$name@$version") >&2
  printf '%s  %s\n' "$sum" "$dir.new/$name-$version.tgz" | sha256sum --check --quiet
  tar -xzf "$dir.new/$name-$version.tgz" -C "$dir.new" --strip-components 1 "package/$file" package/LICENSE
  mv "$dir.new" "$dir"
}

# --- AUDITOR --------------------------------------------------------------------

auditor_part() {
  local dir=$cache/auditor-$auditor_version
  if [ -e "$dir/bin/auditor" ]; then say "auditor: $dir is there"; return; fi
  command -v cargo > /dev/null || die "auditor: cargo is missing, and the one of Debian 12 is too old; install Rust"
  say "auditor: building $dir"
  rm -rf "$dir.new"
  SQLX_OFFLINE=true cargo install --quiet --locked --root "$dir.new" --version "$auditor_version" auditor >&2
  mv "$dir.new" "$dir"
}

# --- main -----------------------------------------------------------------------

# install_part PART runs in a process of its own: a part that fails stops no other.
install_part() {
  case $1 in
    host) host ;;
    postgres) install_on_host postgresql-15 ;;
    chroot) chroot_part ;;
    gridengine) gridengine_part ;;
    htcondor) htcondor_part ;;
    python) python_part ;;
    packages) packages_part ;;
    nomad) nomad_part ;;
    kubernetes) kubernetes_part ;;
    browser) browser_part ;;
    s3) s3_part ;;
    oidc) oidc_part ;;
    clickhouse) clickhouse_part ;;
    auditor) auditor_part ;;
    *) die "unknown part $1: use host, postgres, chroot, gridengine, htcondor, python, packages, nomad, kubernetes, browser, s3, oidc, clickhouse or auditor" ;;
  esac
}

case ${1:-} in
  -where) printf '%s\n' "$cache"; exit ;;
  -build-chroot) shift; build_chroot "$@"; exit ;;
  -part) install_part "$2"; exit ;;
esac
[ "$(id -u)" = 0 ] || die "must run as root"
mkdir -p "$cache"
exec 9> "$cache/.lock"
flock 9
[ $# -gt 0 ] || set -- host chroot gridengine htcondor python packages nomad kubernetes browser s3 oidc clickhouse auditor
failed=()
for part in "$@"; do
  "$BASH" "$0" -part "$part" 9>&- || failed+=("$part")
done
[ ${#failed[@]} = 0 ] || die "could not install ${failed[*]}: see above; e2e/setup.sh ${failed[*]} goes on where it stopped"
say "done"
