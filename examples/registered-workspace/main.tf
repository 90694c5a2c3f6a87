# The machines belong to another root module, which the daemon knows:
#
#   exocomp workspace add edge /srv/infra/edge
#
# An apply of this configuration has the daemon apply that module, wait for its
# hosts, onboard and configure them. Destroying it leaves the machines alone.
resource "exocomp_provision" "edge" {
  workspace = "edge"
  playbook  = "ansible/site.yml"
  ssh_wait  = "10m"

  # The daemon applies only when something here changes. A new image, say:
  triggers = {
    image = "debian-12-2026-11"
  }
}

output "hosts" {
  value = exocomp_provision.edge.hosts
}
