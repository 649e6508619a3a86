import nomad
Nomad = nomad.Nomad()
NAMESPACES = [n['Name'] for n in Nomad.namespaces.get_namespaces()]
NAMESPACES.remove('default')
NAMESPACES.remove('tutorials')
