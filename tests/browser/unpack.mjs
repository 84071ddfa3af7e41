// Decompresses a file of Brotli, which Python's library cannot: node unpack.mjs FILE TARGET
import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";

const [file, target] = process.argv.slice(2);
await pipeline(createReadStream(file), createBrotliDecompress(), createWriteStream(target));
