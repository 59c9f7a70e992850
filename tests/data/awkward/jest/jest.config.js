module.exports = { projects: [
  { displayName: 'one', rootDir: __dirname + '/one', testMatch: ['<rootDir>/*.test.js'] },
  { displayName: { name: 'two words', color: 'blue' }, rootDir: __dirname + '/two', testMatch: ['<rootDir>/*.test.js'] },
] };
