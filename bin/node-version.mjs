// Says which versions of Node run pawl, and what to do with another one. Plain JavaScript that every Node reads.

/** The oldest Node that was tried with node:crypto's KMAC (createMac). */
const OLDEST = [26, 10]
/** The oldest Node that installs the packages, and starts the Node among them. */
const OLDEST_HELPER = [20]
/** The platforms that have a package with Node (package.json, optionalDependencies). */
const PACKAGED = ['linux-x64', 'linux-arm64']

/** Whether pawl runs on a version of Node. */
export const isRecentEnough = (version) => isFrom(version, OLDEST)

/** Whether a version of Node can install the packages and start the Node among them. */
export const mayHelp = (version) => isFrom(version, OLDEST_HELPER)

/** The package that has Node for this machine; undefined when there is none. */
const packageOfNode = ({ platform, arch }) => (PACKAGED.includes(`${platform}-${arch}`) ? `node-${platform}-${arch}` : undefined)

/** A line for a user who starts pawl with a Node that is too old. `isTried`: the packages were installed, without a Node among them. */
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
