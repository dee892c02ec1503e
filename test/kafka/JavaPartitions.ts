/**
 * Keys with the number that Java's client hashes them to, and the partition of six and of twelve that follows. Written by
 * `Utils.toPositive(Utils.murmur2(key))` of org.apache.kafka:kafka-clients; 3.9.2 and 4.3.1 agree.
 */
export const javaPartitions: ReadonlyArray<readonly [key: string, hash: number, ofSix: number, ofTwelve: number]> = [
  ["00000000-0000-0000-0000-000000000000", 713427837, 3, 9],
  ["ffffffff-ffff-ffff-ffff-ffffffffffff", 1787613426, 0, 6],
  ["11111111-1111-4111-8111-111111111111", 845076205, 1, 1],
  ["5f0c3a52-9d0e-5c57-8b9e-3f6c6a1d7c41", 1029677768, 2, 8],
  ["0191f3a0-7b3c-7d4e-8f10-2a5b6c7d8e9f", 615787175, 5, 11],
  ["0191f3a0-7b3c-7d4e-8f10-2a5b6c7d8ea0", 471863176, 4, 4],
  ["0191f3a0-7b3c-7d4e-8f10-2a5b6c7d8ea1", 589985615, 5, 11],
  ["d2a84ff4-8b53-4f9a-9d5c-6d1f0c0e7b11", 1479824979, 3, 3],
  ["3c9e1b7a-52f6-4c1d-b0a8-91e7d4f2a635", 1366435970, 2, 2],
  ["7e57d004-2b97-5e7a-b45f-5387367791cd", 866962277, 5, 5],
  ["6ba7b810-9dad-11d1-80b4-00c04fd430c8", 1536998857, 1, 1],
  ["c9bf9e57-1685-4c89-bafb-ff5af830be8a", 1185160540, 4, 4],
  ["e4eaaaf2-d142-11e1-b3e4-080027620cdd", 1526142328, 4, 4],
  ["2c1d43b8-e6d7-376e-af7f-d4bde997cc3f", 1565681951, 5, 11],
  ["9f8e7d6c-5b4a-4392-8170-6f5e4d3c2b1a", 681751198, 4, 10],
  ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", 2007767031, 3, 3],
  ["123e4567-e89b-12d3-a456-426614174000", 210376136, 2, 8],
  ["f47ac10b-58cc-4372-a567-0e02b2c3d479", 1964707646, 2, 2],
  ["1b4e28ba-2fa1-11d2-883f-0016d3cca427", 1108734938, 2, 2],
  ["key", 1067546281, 1, 1],
  ["сделка", 1477784478, 0, 6]
]
