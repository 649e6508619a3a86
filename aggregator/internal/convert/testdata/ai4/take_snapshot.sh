# 0 */4 * * * /home/ubuntu/accounting/take_snapshot.sh
export NOMAD_ADDR=https://203.0.113.7:4646  # production
export NOMAD_CACERT=/home/ubuntu/nomad-certs/nomad-ca.pem
export NOMAD_CLIENT_CERT=/home/ubuntu/nomad-certs/cli.pem
export NOMAD_CLIENT_KEY="/home/ubuntu/nomad-certs/cli-key.pem"
export NOMAD_TLS_SERVER_NAME=server.global.nomad
python3 take_snapshot.py
