"""N-body dynamics: planetary systems and star clusters with swarms of massless bodies."""
