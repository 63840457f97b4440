// Draws with the processor: every ball, capsule and triangle into a picture with a depth for each
// pixel. While something moves a pixel of the picture is one of the page; at rest it has four.
"use strict";
const data = JSON.parse(document.querySelector("script[type]").textContent);
const canvas = document.querySelector("canvas"), pen = canvas.getContext("2d");
const find = q => document.querySelector(q), slider = find("input"), clock = find("output");
const span = data.high.map((h, k) => h - data.low[k]);
const widest = Math.max(...span), half = data.axes ? span : [widest, widest, widest];
const middle = data.low.map((l, k) => l + span[k] / 2);
const flat = everyEqual(2);  // a plane is looked at straight
let turn = flat ? 0 : 0.7, tilt = flat ? Math.PI / 2 : 0.45, zoom = 1, frame = 0, playing = null;
let grabbed = null, near = null, moving = false, rest = null, hidden = new Set();
if (data.up === 1) { turn = flat ? 0 : 0.5; tilt = flat ? 0 : 0.25; }

function everyEqual(k) {
  const values = new Set();
  for (const { words } of parts()) for (let i = k; i < words.length; i += 3) if (words[i] !== 65535) {
    values.add(words[i]);
    if (values.size > 1) return false;
  }
  return true;
}
function parts() {
  const all = [...data.points.map(p => p.x), ...data.surfaces.map(s => s.x)];
  for (const r of data.rods) all.push(r.start, r.end);
  for (const part of all) if (!part.words) {
    const text = atob(part.data), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    part.words = new Uint16Array(bytes.buffer); part.data = null;
  }
  return all;
}
parts();
const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
const lamp = (() => { const l = [-0.4, 0.65, 0.65], n = Math.hypot(...l); return l.map(v => v / n); })();

// the picture and its depths, of W by H pixels
let W = 0, H = 0, fine = 1, image = null, colours = null, depths = null, scale = 1;
const back = document.createElement("canvas"), ink = back.getContext("2d");
function resize() {
  const box = canvas.getBoundingClientRect(), dots = Math.min(2, devicePixelRatio || 1);
  fine = moving ? 1 : Math.max(2, dots);
  const w = Math.max(1, Math.round(box.width * fine)), h = Math.max(1, Math.round(box.height * fine));
  if (w !== W || h !== H) {
    W = w; H = h; back.width = canvas.width = W; back.height = canvas.height = H;
    image = ink.createImageData(W, H); colours = new Uint32Array(image.data.buffer);
    depths = new Float32Array(W * H);
  }
  colours.fill(0); depths.fill(-1e30);
  scale = (flat ? 0.72 : 0.6) * zoom * Math.min(W, H * 1.05);
}
// a place, in shares of the widest side about the middle, as it is seen: right, up, towards the eye
let rightX, rightY, upX, upY, upZ, eyeX, eyeY, eyeZ;
function look() {
  const s = Math.sin(turn), c = Math.cos(turn), u = Math.sin(tilt), v = Math.cos(tilt);
  rightX = c; rightY = s; upX = -s * u; upY = c * u; upZ = v; eyeX = s * v; eyeY = -c * v; eyeZ = u;
}
const distance = 3.2;
const seen = { x: 0, y: 0, z: 0, size: 0 };
function put(a, b, c) {
  if (data.up === 1) { const keep = b; b = -c; c = keep; }
  const z = eyeX * a + eyeY * b + eyeZ * c;
  const size = scale * (data.axes ? 1 : distance / Math.max(0.2, distance - z));
  seen.x = W / 2 + size * (rightX * a + rightY * b);
  seen.y = H / 2 - size * (upX * a + upY * b + upZ * c); seen.z = z; seen.size = size;
}
function place(part, i) {
  const at = 3 * ((part.frames > 1 ? Math.min(frame, part.frames - 1) : 0) * part.count + i), w = part.words;
  if (w[at] === 65535) return false;
  const f = k => (w[at + k] / 65534 - 0.5) * span[k] / half[k];
  put(f(0), f(1), f(2)); return true;
}
const colour = (c, shade) => 0xff000000 | (Math.min(255, c[2] * shade) << 16) | (Math.min(255, c[1] * shade) << 8) | Math.min(255, c[0] * shade);
const light = (x, y, z) => 0.6 + 0.52 * Math.max(0, x * lamp[0] + y * lamp[1] + z * lamp[2]);
function ball(r, c, hollow) {
  const { x: X, y: Y, z: Z, size } = seen, inner = hollow ? (r - 1.5 * fine) ** 2 : -1;
  const y0 = Math.max(0, Math.ceil(Y - r)), y1 = Math.min(H - 1, Math.floor(Y + r));
  const x0 = Math.max(0, Math.ceil(X - r)), x1 = Math.min(W - 1, Math.floor(X + r));
  for (let y = y0; y <= y1; y++) for (let x = x0; x <= x1; x++) {
    const dx = x - X, dy = y - Y, d = dx * dx + dy * dy;
    if (d > r * r || d < inner) continue;
    const n = Math.sqrt(r * r - d), z = Z + n / size, at = y * W + x;
    if (z <= depths[at]) continue;
    depths[at] = z; colours[at] = colour(c, hollow ? 1 : light(dx / r, -dy / r, n / r));
  }
}
function capsule(a, b, ra, rb, c) {
  const ex = b.x - a.x, ey = b.y - a.y, long = ex * ex + ey * ey, most = Math.max(ra, rb);
  const y0 = Math.max(0, Math.ceil(Math.min(a.y, b.y) - most)), y1 = Math.min(H - 1, Math.floor(Math.max(a.y, b.y) + most));
  const x0 = Math.max(0, Math.ceil(Math.min(a.x, b.x) - most)), x1 = Math.min(W - 1, Math.floor(Math.max(a.x, b.x) + most));
  for (let y = y0; y <= y1; y++) for (let x = x0; x <= x1; x++) {
    const t = long > 0 ? Math.max(0, Math.min(1, ((x - a.x) * ex + (y - a.y) * ey) / long)) : a.z > b.z ? 0 : 1;
    const r = ra + t * (rb - ra), dx = x - a.x - t * ex, dy = y - a.y - t * ey, d = dx * dx + dy * dy;
    if (d > r * r) continue;
    const n = Math.sqrt(r * r - d), z = a.z + t * (b.z - a.z) + n / a.size, at = y * W + x;
    if (z <= depths[at]) continue;
    depths[at] = z; colours[at] = colour(c, light(dx / r, -dy / r, n / r));
  }
}
function triangle(p, q, r, c) {
  const area = (q.x - p.x) * (r.y - p.y) - (r.x - p.x) * (q.y - p.y);
  if (!area) return;
  const u = [(q.x - p.x) / q.size, (p.y - q.y) / q.size, q.z - p.z], v = [(r.x - p.x) / r.size, (p.y - r.y) / r.size, r.z - p.z];
  let n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
  const long = Math.hypot(...n) * (n[2] < 0 ? -1 : 1) || 1, shade = colour(c, light(n[0] / long, n[1] / long, n[2] / long));
  const y0 = Math.max(0, Math.ceil(Math.min(p.y, q.y, r.y))), y1 = Math.min(H - 1, Math.floor(Math.max(p.y, q.y, r.y)));
  const x0 = Math.max(0, Math.ceil(Math.min(p.x, q.x, r.x))), x1 = Math.min(W - 1, Math.floor(Math.max(p.x, q.x, r.x)));
  for (let y = y0; y <= y1; y++) for (let x = x0; x <= x1; x++) {
    const f = ((q.x - x) * (r.y - y) - (r.x - x) * (q.y - y)) / area, g = ((r.x - x) * (p.y - y) - (p.x - x) * (r.y - y)) / area;
    if (f < 0 || g < 0 || f + g > 1) continue;
    const z = f * p.z + g * q.z + (1 - f - g) * r.z, at = y * W + x;
    if (z > depths[at]) { depths[at] = z; colours[at] = shade; }
  }
}
const short = v => Math.abs(v) >= 1e5 || (v && Math.abs(v) < 1e-3) ? v.toExponential(2) : String(+v.toPrecision(4));
function frameOfBox() {
  const style = getComputedStyle(document.documentElement), line = style.getPropertyValue("--line"), soft = style.getPropertyValue("--soft"), dark = style.getPropertyValue("--ink");
  const names = [], h = half.map((w, k) => flat && k === 2 ? 0 : span[k] / w / 2), at = s => { put(s[0] * h[0], s[1] * h[1], s[2] * h[2]); return [seen.x, seen.y]; };
  pen.lineWidth = fine; pen.font = `${13 * fine}px system-ui,sans-serif`; pen.textAlign = "center"; pen.textBaseline = "middle";
  const stroke = (p, q, c) => { pen.strokeStyle = c; pen.beginPath(); pen.moveTo(...at(p)); pen.lineTo(...at(q)); pen.stroke(); };
  for (let k = 0; k < 3; k++) {
    if (flat && k === 2) continue;
    const [i, j] = [0, 1, 2].filter(m => m !== k);
    for (const [a, b] of flat ? [[-1, 1], [1, 1]] : [[-1, 1], [1, -1]]) {
      const p = [0, 0, 0]; p[i] = a; p[j] = b; const q = [...p]; p[k] = -1; q[k] = 1; stroke(p, q, line);
    }
    stroke([-1, -1, -1], [0, 1, 2].map(m => m === k ? 1 : -1), data.axes ? soft : line);
    if (!data.axes) continue;
    const [x, y] = at([0, 1, 2].map(m => m === k ? 1.16 : -1)), clear = Math.max(60 * fine, Math.min(W - 60 * fine, x));
    names.push([data.axes[k], clear, y - 8 * fine, dark], [`${short(data.low[k])} to ${short(data.high[k])}`, clear, y + 8 * fine, soft]);
  }
  return names;
}
// over the picture, each with a rim in the colour of the page
function write(names) {
  pen.strokeStyle = getComputedStyle(document.body).backgroundColor; pen.lineWidth = 4 * fine; pen.lineJoin = "round";
  for (const [text, x, y, c] of names) { pen.strokeText(text, x, y); pen.fillStyle = c; pen.fillText(text, x, y); }
}
let hit = null;
function draw() {
  resize(); look();
  const tone = matchMedia("(prefers-color-scheme: dark)").matches ? 1.12 : 1;
  hit = null;
  data.points.forEach((set, s) => {
    if (hidden.has(s)) return;
    const c = rgb(set.colour).map(v => v * tone), dot = fine * (data.axes ? 3.4 : set.x.count > 3000 ? 1.2 : set.x.count > 300 ? 1.9 : 3.2);
    for (let i = 0; i < set.x.count; i++) {
      if (!place(set.x, i)) continue;
      const r = set.radius ? Math.max(0.8 * fine, set.radius / widest * seen.size) : dot;
      ball(r, c, set.hollow);
      if (near && Math.hypot(seen.x - near[0] * fine, seen.y - near[1] * fine) < 8 * fine && (!hit || seen.z > hit.z)) hit = { z: seen.z, set, i };
    }
  });
  for (const rods of data.rods) for (let i = 0; i < rods.start.count; i++) {
    if (!place(rods.start, i)) continue;
    const a = { ...seen };
    if (!place(rods.end, i)) continue;
    const b = { ...seen }, r = rods.radius[i] / widest;
    capsule(a, b, r * a.size, r * b.size, rgb(rods.colour[i]));
  }
  for (const surface of data.surfaces) {
    const corners = [], c = rgb(surface.colour);
    for (let i = 0; i < surface.x.count; i++) corners.push(place(surface.x, i) ? { ...seen } : null);
    for (let i = 0; i < surface.faces.length; i += 3) {
      const [p, q, r] = [0, 1, 2].map(k => corners[surface.faces[i + k]]);
      if (p && q && r) triangle(p, q, r, c);
    }
  }
  pen.clearRect(0, 0, W, H);
  const names = frameOfBox();
  ink.putImageData(image, 0, 0); pen.drawImage(back, 0, 0); write(names);
  tell();
}
function tell() {
  find("#told").textContent = "";
  if (!hit || (!data.axes && hit.set.x.count > 50)) return;
  const at = 3 * ((hit.set.x.frames > 1 ? frame : 0) * hit.set.x.count + hit.i);
  for (let k = 0; k < 3; k++) {
    const row = document.createElement("div"), value = data.low[k] + hit.set.x.words[at + k] / 65534 * span[k];
    row.textContent = `${data.axes ? data.axes[k] : "xyz"[k]} ${short(value)}`; find("#told").append(row);
  }
}
let asked = false;
function redraw(busy) {
  if (busy) { moving = true; clearTimeout(rest); rest = setTimeout(() => { moving = false; redraw(); }, 180); }
  if (asked) return;
  asked = true; requestAnimationFrame(() => { asked = false; draw(); });
}
function go(to) {
  frame = Math.max(0, Math.min(data.frames - 1, to)); slider.value = frame;
  clock.textContent = data.times ? short(data.times[frame]) : `${frame + 1} / ${data.frames}`;
  slider.setAttribute("aria-valuetext", clock.textContent);
  redraw(playing !== null);
}
function play(on) {
  clearInterval(playing); playing = null; moving = false;
  if (on) playing = setInterval(() => go((frame + 1) % data.frames), Math.max(40, Math.min(120, 6000 / data.frames)));
  find("[data-do=play]").textContent = on ? "❚❚" : "▶"; redraw();
}
const acts = {
  ArrowLeft: () => { turn -= 0.1; }, ArrowRight: () => { turn += 0.1; }, ArrowUp: () => { tilt += 0.1; }, ArrowDown: () => { tilt -= 0.1; },
  up: () => { tilt += 0.15; }, down: () => { tilt -= 0.15; }, "+": () => { zoom *= 1.15; }, "=": () => { zoom *= 1.15; }, "-": () => { zoom /= 1.15; },
  " ": () => play(playing === null), play: () => play(playing === null), ",": () => go(frame - 1), ".": () => go(frame + 1),
};
function act(name) {
  if (!acts[name]) return false;
  acts[name](); tilt = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, tilt)); redraw(true); return true;
}
canvas.onpointerdown = e => { grabbed = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); };
canvas.onpointerup = canvas.onpointercancel = () => { grabbed = null; };
canvas.onpointermove = e => {
  const box = canvas.getBoundingClientRect();
  near = [e.clientX - box.left, e.clientY - box.top];
  if (grabbed) {
    turn -= (e.clientX - grabbed[0]) * 0.01; tilt += (e.clientY - grabbed[1]) * 0.01;
    tilt = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, tilt)); grabbed = [e.clientX, e.clientY]; redraw(true);
  } else if (data.axes || data.points.some(p => p.x.count <= 50)) redraw();
};
// the wheel scrolls the page; with control, which a pinch on a trackpad sends, it comes nearer
canvas.addEventListener("wheel", e => {
  if (!e.ctrlKey) return;
  e.preventDefault(); zoom *= Math.exp(-e.deltaY * 0.004); redraw(true);
}, { passive: false });
canvas.onkeydown = e => { if (!e.ctrlKey && !e.metaKey && act(e.key)) e.preventDefault(); };
find("form").onclick = e => { const name = e.target.dataset.do; if (name) act(name); };
// a hand on the slider stops the film; there, too, space plays it
find("form").onkeydown = e => { if (e.target === slider && e.key === " ") { act(" "); e.preventDefault(); } };
find("form").onsubmit = e => e.preventDefault();
slider.max = data.frames - 1; slider.oninput = () => { play(false); go(+slider.value); };
if (data.frames < 2) { slider.style.visibility = clock.style.visibility = "hidden"; find("[data-do=play]").hidden = true; }
if (data.note) { find("p").hidden = false; find("p").textContent = data.note; }
data.points.forEach((set, s) => {
  if (!set.name) return;
  const label = document.createElement("label"), box = document.createElement("input"), dot = document.createElement("i");
  box.type = "checkbox"; box.checked = true; box.hidden = data.points.length < 2;
  box.onchange = () => { box.checked ? hidden.delete(s) : hidden.add(s); redraw(); };
  dot.style.borderColor = set.colour; if (!set.hollow) dot.style.background = set.colour;
  label.append(box, dot, set.name); find("#names").append(label);
});
new ResizeObserver(() => redraw()).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraw());
go(0);
new IntersectionObserver(seenNow => {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (data.frames > 1 && !still) play(seenNow[0].isIntersecting);
}).observe(canvas);
