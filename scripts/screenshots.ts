// Takes a picture of every page of the console, light and dark, for a desk and for a phone, into ./screenshots.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  CHROMIUM,
  consolePages,
  furnish,
  hasChromium,
  launchChromium,
  openPage,
  populate,
  signIn,
} from '../test/helpers/console.ts'
import { ADMIN_PASSWORD, createInstallation, endEverything, startPawl } from '../test/helpers/process.ts'
import { runCommand } from './command-line.ts'

const FOLDER = 'screenshots'
const SIZES = [
  ['desk', 1440, 900],
  ['phone', 390, 844],
] as const

const usage = `Takes a picture of every page of the console, light and dark, 1440 and 390 pixels wide, into ./${FOLDER}:
  npm run screenshots [-- NAME...]
It starts a server of its own and fills it. NAME: only these pages. It needs ${CHROMIUM}.`

await runCommand({ usage, wordsMax: 30 }, async ({ words }) => {
  if (!hasChromium) throw new Error(`${CHROMIUM} is missing`)
  mkdirSync(FOLDER, { recursive: true })
  try {
    const installation = await createInstallation('embedded', { isEmpty: true })
    const { url } = await startPawl(installation.env, { PAWL_ADMIN_PASSWORD: ADMIN_PASSWORD, PAWL_LOG_LEVEL: 'error' })
    const furnished = await furnish(url, `admin:${ADMIN_PASSWORD}`)
    await populate(furnished)
    const wanted = consolePages(furnished).filter(([name]) => words.length === 0 || words.includes(name))
    const browser = await launchChromium()
    for (const colorScheme of ['light', 'dark'] as const) {
      for (const [size, width, height] of SIZES) {
        const page = await openPage(browser, { colorScheme, viewport: { width, height } })
        await page.goto(`${url}/console/sign-in`)
        await page.screenshot({ path: join(FOLDER, `sign-in-${size}-${colorScheme}.png`) })
        await signIn(page, url, 'admin', ADMIN_PASSWORD)
        for (const [name, path] of wanted) {
          await page.goto(`${url}/console${path}`)
          await page.screenshot({ path: join(FOLDER, `${name}-${size}-${colorScheme}.png`), fullPage: true })
        }
        await page.context().close()
      }
    }
    await browser.close()
    process.stdout.write(`${wanted.length} pages, ${wanted.length * 4} pictures in ${FOLDER}\n`)
  } finally {
    await endEverything()
  }
})
