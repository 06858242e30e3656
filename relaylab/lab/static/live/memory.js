// @ts-check
import { dim, el, heading, short } from "../dom.js";

// Which bytes hold a value during which steps.
export function memory(plan) {
  const steps = Math.max(1, plan.steps.length);
  const bars = plan.bars.map((bar) => {
    const block = el("div", {
      className: "rl-bar-block",
      title: `${short(bar.bytes)}B at ${bar.offset}, steps ${bar.first} to ${bar.last}`,
    });
    Object.assign(block.style, {
      left: `${(100 * bar.first) / steps}%`,
      width: `${(100 * (bar.last - bar.first + 1)) / steps}%`,
      bottom: `${(100 * bar.offset) / plan.arena}%`,
      height: `${Math.max(0.8, (100 * bar.bytes) / plan.arena)}%`,
    });
    return block;
  });
  return [
    heading("memory plan"),
    dim(`${short(plan.arena)}B for tensors; steps from left to right, addresses upward`),
    el("div", { className: "rl-memory" }, ...bars),
  ];
}
