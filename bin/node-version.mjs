// Which Node pawl runs on, and what to do with another one. Plain JavaScript that every Node reads.

/** The oldest Node that was tried with node:crypto's KMAC (createMac). */
const OLDEST = [26, 10]
/** The oldest that installs the packages, and starts the Node among them. */
const OLDEST_HELPER = [20]
/** Where there is a package that holds Node (package.json, optionalDependencies). */
const PACKAGED = ['linux-x64', 'linux-arm64']

/** Whether pawl runs on it. */
export const isRecentEnough = (version) => isFrom(version, OLDEST)

/** Whether it may install the packages and start the Node among them. */
export const mayHelp = (version) => isFrom(version, OLDEST_HELPER)

/** The package that holds Node for this machine; undefined where there is none. */
const packageOfNode = ({ platform, arch }) => (PACKAGED.includes(`${platform}-${arch}`) ? `node-${platform}-${arch}` : undefined)

/** One line for whoever starts pawl on a Node that is too old. `isTried`: the packages were installed, and brought none. */
export function explainNode({ platform, arch, versions: { node } }, isTried = false) {
  const needs = `pawl needs Node ${OLDEST.join('.')} or newer, this is ${node}`
  const name = packageOfNode({ platform, arch })
  if (name === undefined)
    return `${needs}, and no package brings one for ${platform} on ${arch}: install it, https://nodejs.org has it`
  if (!mayHelp(node))
    return `${needs}; the package ${name} brings one, and needs Node ${OLDEST_HELPER.join('.')} to be installed: install either`
  return isTried
    ? `${needs}, and the package ${name}, which brings one, was not installed: look at what "npm ci --include=optional" says, or install Node`
    : `${needs}: run "npm start", which installs the package ${name} and runs on it`
}

function isFrom(version, [major, minor = 0]) {
  const [ownMajor, ownMinor] = version.split('.').map(Number)
  return ownMajor > major || (ownMajor === major && ownMinor >= minor)
}
