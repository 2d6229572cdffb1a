// Copies values to the clipboard, prevents that a form is sent twice when its button is pressed twice, and marks parts of a page that could not be
// fetched again. Pages work without this script.
let sent = new WeakSet()
document.addEventListener('submit', (event) => {
  const form = event.target
  // A download changes nothing and leaves its page in place, so its form may be sent again.
  if (form.method !== 'post' || form.elements.action?.value === 'export') return
  if (sent.has(form)) event.preventDefault()
  sent.add(form)
  setTimeout(() => sent.delete(form), 60_000)
})
// Who goes back may find the page as it was left.
addEventListener('pageshow', () => {
  sent = new WeakSet()
})

// The next answer takes the mark away, because it replaces the part.
for (const failure of ['htmx:response:error', 'htmx:error'])
  document.addEventListener(failure, ({ target }) => {
    const part = target instanceof Element ? target.closest('[hx-target]')?.getAttribute('hx-target') : undefined
    if (part) document.querySelector(part)?.classList.add('is-stale')
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
