// @ts-check
// From a rule to its code: the cell in this notebook, the file in JupyterLab if that serves it, else the place copied.

/**
 * @param {import("../types.js").Ask} ask
 * @param {(text: string) => void} say
 */
export const codeOpener = (ask, say) => async (index, at) => {
  const { error, files, cell, line } = await ask("code_place", index, at);
  if (error) return say(error);
  const prompts = [...document.querySelectorAll(".jp-InputPrompt")];
  const prompt = prompts.find((p) => cell && p.textContent.trim() === `[${cell}]:`);
  if (prompt) return prompt.scrollIntoView({ block: "center" });
  const { serverRoot, baseUrl } = JSON.parse(document.getElementById("jupyter-config-data")?.textContent || "{}");
  const file = files.find((name) => name.startsWith(`${serverRoot}/`));
  if (file) return window.open(`${baseUrl}lab/tree${encodeURI(file.slice(serverRoot.length))}`);
  const place = cell ? `cell In[${cell}], line ${line}` : `${files[0]}:${line}`;
  const copied = await navigator.clipboard?.writeText(place).then(
    () => true,
    () => false,
  );
  say(copied ? `copied ${place}` : place);
};
