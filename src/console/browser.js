// Copies values to the clipboard, and prevents that a form is sent twice when its button is pressed twice. Pages work without this script.
const sent = new WeakSet()
document.addEventListener('submit', (event) => {
  const form = event.target
  if (form.method !== 'post') return
  if (sent.has(form)) event.preventDefault()
  sent.add(form)
  // A download leaves its page in place, so the form may be sent again later.
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

/** Browsers give the clipboard only to pages that come by TLS or from the same machine. On other pages a selected text is copied. */
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
