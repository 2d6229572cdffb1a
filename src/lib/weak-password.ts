// Recognises passwords that attackers guess first: usual words, also with digits and signs; keys in a row; one thing repeated.

/** Whether a chosen password is among those that attackers guess first. Other code checks its length. */
export function isWeakPassword(password: string): boolean {
  const plain = password.normalize('NFKC').toLowerCase()
  if (new Set(plain).size < DIFFERENT_CHARACTERS_MIN || isInRow(plain)) return true
  // Digits and signs stand for letters, or decorate a word, mostly at its end. A password without a letter was judged above.
  const withoutEnd = plain.replace(/[^\p{L}]+$/u, '')
  return [unmask(plain), unmask(withoutEnd), plain]
    .map((text) => text.replaceAll(/[^\p{L}]/gu, ''))
    .some((letters) => letters !== '' && isMadeOfUsualWords(letters))
}

/** Whether a text is part of a row of the keyboard, the alphabet or the digits, forwards or backwards, any number of times. */
function isInRow(text: string): boolean {
  return ROWS.some((row) => {
    const forwards = row.repeat(Math.ceil(text.length / row.length) + 1)
    return forwards.includes(text) || forwards.split('').toReversed().join('').includes(text)
  })
}

function isMadeOfUsualWords(letters: string): boolean {
  // At each index: whether the text before it is made of usual words.
  const isMade = [true]
  for (let end = 1; end <= letters.length; end += 1) {
    isMade.push(USUAL_WORDS.some((word) => letters.endsWith(word, end) && isMade[end - word.length]))
  }
  return isMade.at(-1) === true
}

const unmask = (text: string): string => text.replaceAll(/[013457@$!|]/g, (sign) => SIGNS[sign] ?? '')

const DIFFERENT_CHARACTERS_MIN = 5
const SIGNS: Readonly<Record<string, string>> = {
  '0': 'o',
  '1': 'i',
  '3': 'e',
  '4': 'a',
  '5': 's',
  '7': 't',
  '@': 'a',
  $: 's',
  '!': 'i',
  '|': 'l',
}
const ROWS = [
  '1234567890',
  '0123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'qwertyuiopasdfghjklzxcvbnm',
  '1q2w3e4r5t6y7u8i9o0p',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm',
]

// The words that lists of leaked passwords begin with, and those that installations are delivered with.
const USUAL_WORDS =
  `abc access account admin administrator adobe amanda andrew angel apple asdf asdfgh asdfghjkl ashley backend bailey bank banking baseball
  batman biteme bitnami blink buster change changeit changeme changethis charlie cheese chelsea chocolate computer correcthorsebatterystaple
  daniel database default demo dragon dubsmash example family flower football foobar freedom fuckyou george ginger guest hallo
  hannah harley hello hockey home hunter iloveyou integration internal internet jennifer jessica jordan joshua justin killer klaster letme
  letmein liverpool login love lovely maggie manager master matrix matthew me michael michelle monkey monster mustang my mynoob mypassword
  myspace naruto nicole ninja nothing oracle orange pass passphrase passw passwd password passwort pawl pepper phoenix please pokemon
  postgres powerauth princess private public purple qazwsx qwer qwert qwerty qwertyuiop qwertz ranger robert root samsung secret secure
  security server service shadow snoopy soccer solo starwars startup summer sunshine superman superuser superuser support sweet sys sysadmin
  system temp temporary test tester testing thomas tigger tinkle trustno trustnoi user username welcome whatever winter wultra yankees you
  zaq zxcvbn zxcvbnm`
    .split(/\s+/)
    .filter((word, at, words) => words.indexOf(word) === at)
