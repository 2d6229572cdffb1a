// Creates an operation: a template, a form made of its placeholders, and a preview of the phone beside it.
import { parseTemplate } from '../../domain/template/parser.ts'
import { chooseTexts, type Template } from '../../domain/template/template.ts'
import { at, Refusal } from '../api.ts'
import { actionForm, backTo, card, type Choice, chips, empty, field, pageHead, searchForm, select, UNTYPED } from '../elements.ts'
import { html, type Markup } from '../markup.ts'
import { done, link, type Page, type PageCall, type View } from '../page.ts'
import { labelsOf, placeholdersOf, sampleOf, templatePreview } from '../phone-preview.ts'

const PREFIX = 'parameter.'
const TITLE = 'New operation'
/** Up to this number of templates are shown as links. More are shown as a list to choose from. */
const CHIPS_MAX = 12

async function render(call: PageCall): Promise<View> {
  const { templates } = await call.api.get<{ templates: readonly { templateName: string }[] }>('/admin/templates')
  const names = templates.map(({ templateName }) => templateName)
  const wanted = call.query['template'] ?? (await readUsualTemplate(call, names))
  const head = pageHead(TITLE, {
    back: backTo(link(call, '/operations'), 'Operations'),
    lead: 'The phone of the user is asked at once.',
  })
  if (wanted === undefined || !call.isActing) return { title: TITLE, body: html`${head}${renderNothing(call)}` }
  const template = await readTemplate(call, wanted)
  // The preview is a page with an address of its own, but its form creates the operation at this address.
  const target = { ...call, here: link(call, '/operations/new', { template: wanted }) }
  return {
    title: TITLE,
    body: html`${head}<div class="columns"><div>${card('Template', renderChoice(call, names, wanted))}
      ${card('Operation', renderForm(target, template))}</div>
      <div class="beside">${card('On the phone', html`<div id="preview">${templatePreview(template, readParameters(call), languageOf(call, template))}<p class="hint">With samples where nothing is typed.</p></div>`)}</div></div>`,
  }
}

export const operationNew: Page = {
  path: '/operations/new',
  section: 'operations',
  render,
  actions: {
    create: async (call) => {
      const { form, api, query } = call
      const { operationId } = await api.send<{ operationId: string }>('POST', '/operations', {
        userId: form.text('userId'),
        template: query['template'],
        language: form.optional('language') ?? null,
        externalId: form.optional('externalId') ?? null,
        parameters: readParameters(call),
      })
      return done(call, `/operations/${operationId}`, 'created')
    },
  },
}

/** The same page with the typed values and their preview. Nothing is created. */
export const operationPreview: Page = { path: '/operations/preview', section: 'operations', render, actions: { create: render } }

async function readTemplate({ api }: PageCall, name: string): Promise<Template> {
  const parsed = parseTemplate(await api.get(at`/admin/templates/${name}`))
  if ('template' in parsed) return parsed.template
  // Somebody altered it in the database.
  throw new Refusal(409, `The template ${name} cannot be used: store it again`, parsed.violations)
}

const readParameters = ({ form }: PageCall): Record<string, string> =>
  Object.fromEntries(
    form.entries
      .filter(([name, value]) => name.startsWith(PREFIX) && value !== '')
      .map(([name, value]) => [name.slice(PREFIX.length), value]),
  )

const languageOf = ({ form }: PageCall, { texts }: Template): string =>
  form.optional('language') ?? chooseTexts(texts, ['en']).locale

/** The template of the newest operation, else the first template. */
async function readUsualTemplate({ api, application }: PageCall, names: readonly string[]): Promise<string | undefined> {
  const path = at`/admin/applications/${application}/operations`
  const { operations } = await api.get<{ operations: readonly { template: string }[] }>(path, { limit: 1 })
  return names.find((name) => name === operations[0]?.template) ?? names[0]
}

function renderChoice(call: PageCall, names: readonly string[], wanted: string): Markup {
  const choices = names.map((name): Choice => [name, name])
  return names.length <= CHIPS_MAX
    ? chips({ ...call, query: { template: wanted } }, '/operations/new', 'template', 'Made from', choices)
    : searchForm(call, '/operations/new', select(UNTYPED, 'template', 'Made from', choices, { value: wanted }), {
        app: call.application,
      })
}

function renderForm(call: PageCall, template: Template): Markup {
  const preview = link(call, '/operations/preview', { template: template.templateName })
  const labels = labelsOf(template, languageOf(call, template))
  const fields = placeholdersOf(template).map(({ name, isRequired }) =>
    field(call, `${PREFIX}${name}`, labels.get(name) ?? name, {
      isRequired,
      placeholder: `e.g. ${sampleOf(name)}`,
      apiName: name,
      hint: html`<code>${name}</code>${!isRequired && ', only shown; may be left out'}`,
    }),
  )
  const languages = Object.keys(template.texts)
  const live = html`<div class="fields" hx-post="${preview}" hx-trigger="input delay:400ms" hx-include="closest form" hx-select="#preview" hx-target="#preview" hx-swap="outerHTML">
    ${field(call, 'userId', 'User', { isRequired: true, placeholder: 'alice', hint: 'Needs an active phone.' })}
    <div class="pairs">${fields}</div>
    ${
      languages.length > 1 &&
      select(
        call,
        'language',
        'Language of the texts in a QR code',
        languages.map((language) => [language, language]),
        { value: languageOf(call, template) },
      )
    }
    ${field(call, 'externalId', 'External id', { hint: 'The bank’s own id, which webhooks can carry. May be left out.' })}</div>`
  const beside = html`<button class="button is-plain" formaction="${preview}" formnovalidate>Preview</button>`
  return actionForm(call, 'create', 'Ask the user', { fields: () => live, beside })
}

const renderNothing = (call: PageCall): Markup =>
  call.isActing
    ? empty(
        'There is no template',
        'Operations are made from templates.',
        html`<a class="button is-plain" href="${link(call, '/templates')}">Templates</a>`,
      )
    : empty(
        'Not for this credential',
        'Operations are created by back ends, and by administrators who may act for an application.',
      )
