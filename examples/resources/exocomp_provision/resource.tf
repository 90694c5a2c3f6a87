# Whatever makes the machines; here a cloud with servers by name.
resource "hcloud_server" "web" {
  for_each    = toset(["web1", "web2"])
  name        = each.key
  image       = "debian-12"
  server_type = "cx22"
  ssh_keys    = ["ops"]
}

# One resource provisions all of them.
resource "exocomp_provision" "web" {
  workspace = "web"
  playbook  = "ansible/site.yml"

  inventory = {
    for name, server in hcloud_server.web : name => {
      ansible_host        = server.ipv4_address
      ansible_user        = "root"
      exocomp_instance_id = server.id # a rebuilt machine may have a new host key
    }
  }

  vars = {
    domain = "example.org"
    ports  = [80, 443]
  }
}
