import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toolMetadata } from '@aexhq/brain'
import { frequentWords, words } from './tool.ts'

void test('names the most frequent words, equal ones in the order of the alphabet', () => {
  assert.deepEqual(frequentWords('b a B c', 2), [
    { word: 'b', count: 2 },
    { word: 'a', count: 1 },
  ])
})

void test('tells models what it takes', () => {
  const { name, input_schema } = toolMetadata(words)
  assert.equal(name, '{{name}}')
  assert.deepEqual(input_schema['required'], ['text'])
})
