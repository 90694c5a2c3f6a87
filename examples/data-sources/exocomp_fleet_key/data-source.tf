data "exocomp_fleet_key" "this" {}

# The machine lets the daemon in at first boot, without another credential.
resource "hcloud_server" "web" {
  name        = "web1"
  image       = "debian-12"
  server_type = "cx22"
  user_data   = <<-EOT
    #cloud-config
    ssh_authorized_keys:
      - ${data.exocomp_fleet_key.this.public_key}
  EOT

  lifecycle {
    ignore_changes = [user_data] # a rotated key is no reason for a new machine
  }
}
