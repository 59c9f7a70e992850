const jsdom = require('karma-jsdom-launcher');
module.exports = (config) => config.set({ basePath: __dirname, frameworks: ['mocha'], files: ['a.js'], browsers: ['jsdom'], singleRun: true,
  plugins: ['karma-mocha', 'karma-jsdom-launcher', 'karma-mocha-reporter', 'karma-spec-reporter'], colors: !!process.env.COLORS });
