// Runs in the browser: copies a value to the clipboard, and sends a form once where its button is pressed twice. Pages work without it.
const sent = new WeakSet()
document.addEventListener('submit', (event) => {
  const form = event.target
  if (form.method !== 'post') return
  if (sent.has(form)) event.preventDefault()
  sent.add(form)
  // A page that a download leaves in its place may be used again.
  setTimeout(() => sent.delete(form), 5_000)
})

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest('button[data-copy]') : null
  if (button?.firstChild) void copyOf(button, button.firstChild)
})

async function copyOf(button, said) {
  said.nodeValue = (await copyText(button.dataset.copy ?? '')) ? 'Copied' : 'Not copied'
  setTimeout(() => {
    said.nodeValue = 'Copy'
  }, 2_000)
}

/** Browsers give the clipboard to pages by TLS and of this machine alone; elsewhere what is chosen is copied. */
async function copyText(text) {
  if (navigator.clipboard) {
    return await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    )
  }
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'hidden'
  document.body.append(field)
  const { activeElement } = document
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  activeElement?.focus()
  return isCopied
}
