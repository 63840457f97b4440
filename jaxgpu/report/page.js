// films play while they are seen, unless their reader asked for less motion
const still = matchMedia("(prefers-reduced-motion: reduce)");
const watch = new IntersectionObserver(seen => {
  for (const { target, isIntersecting } of seen) {
    if (isIntersecting && !still.matches) target.play().catch(() => {}); else target.pause();
  }
}, { threshold: 0.4 });
document.querySelectorAll("video").forEach(film => watch.observe(film));
