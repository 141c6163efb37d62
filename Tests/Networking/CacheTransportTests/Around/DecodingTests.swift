#if ContentDecoding
import CacheCore
import CacheTesting
import Foundation
import HTTPTypes
import Testing

@testable import CacheTransport

@Suite("Content decoding")
struct DecodingTests {
  private let network = ScriptedDownloader()
  private let url: URL

  init() throws { url = try TestRequest.url("https://e.com/a") }

  private func ask(
    _ body: Data, _ coding: String?, chunks: Int = 16_384, limits: DecodingLimits = DecodingLimits(),
    status: HTTPResponse.Status = .ok, method: HTTPRequest.Method = .get, fields: HTTPFields = [:]
  ) async throws -> DownloadResponse {
    var responseFields: HTTPFields = [.contentLength: String(body.count), .eTag: #""strong""#]
    if let coding { responseFields[.contentEncoding] = coding }
    network.respond(to: url, with: .response(status, fields: responseFields, body: body).chunked(by: chunks))
    return try await DecodingDownloader(network, limits: limits).download(
      DownloadRequest(head: HTTPRequest(resource: url, method: method, headerFields: fields)))
  }

  private func failing(
    _ body: Data, _ coding: String, chunks: Int = 16_384, limits: DecodingLimits = DecodingLimits()
  ) async -> CacheError? {
    await failure { _ = try await ask(body, coding, chunks: chunks, limits: limits).body.collect() }
  }

  @Test(
    "a body is decoded for every size, coding and chunk size", arguments: [1, 7, 16_384], [0, 1, 1_000, 300_000])
  func roundTrip(_ chunks: Int, _ size: Int) async throws {
    guard chunks > 1 || size <= 1_000 else { return }
    let text = Coded.text(size)
    for (format, name) in [(Coded.Format.gzip, "gzip"), (.gzip, "X-GZip"), (.zlib, "deflate"), (.raw, "deflate")] {
      let encoded = Coded.encode(text, format)
      let response = try await ask(encoded, name, chunks: chunks)
      #expect(try await response.body.collect() == text, "\(name) \(format)")
      #expect(response.metrics().bytesOnWire == Int64(encoded.count))
      #expect(response.metrics().bytesDecoded == Int64(size))
      #expect(response.body.length == nil)
    }
  }

  @Test("the head describes the decoded bytes, and its entity tag stays unchanged")
  func head() async throws {
    let fields = try await ask(Coded.encode(Data("text".utf8)), "gzip").head.headerFields
    #expect(fields[.contentEncoding] == nil)
    #expect(fields[.contentLength] == nil)
    #expect(fields[.eTag] == #""strong""#)
  }

  @Test("codings are requested unless the request has Accept-Encoding or a range")
  func acceptEncoding() async throws {
    _ = try await ask(Data(), nil)
    _ = try await ask(Data(), nil, fields: [.acceptEncoding: "identity"])
    _ = try await ask(Data(), nil, fields: [.range: "bytes=0-9"])
    let accepted = network.requests.map { $0.headerFields[.acceptEncoding] }
    #expect(accepted[0]?.hasPrefix("gzip, deflate") == true)
    #expect(accepted[1...] == ["identity", nil])
  }

  @Test(
    "a response without a whole body is not decoded",
    arguments: [
      (HTTPResponse.Status.partialContent, HTTPRequest.Method.get), (.notModified, .get), (.noContent, .get), (.ok, .head),
    ])
  func untouched(_ status: HTTPResponse.Status, _ method: HTTPRequest.Method) async throws {
    let encoded = Coded.encode(Data("text".utf8))
    let response = try await ask(encoded, "gzip", status: status, method: method)
    #expect(response.head.headerFields[.contentEncoding] == "gzip")
    #expect(response.head.headerFields[.contentLength] == String(encoded.count))
    #expect(try await response.body.collect() == (method == .head ? Data() : encoded))
  }

  @Test("a response with an unknown coding is returned unchanged", arguments: ["zstd", "gzip, zstd", "zstd, gzip", "compress"])
  func unknown(_ coding: String) async throws {
    let response = try await ask(Data("whatever".utf8), coding)
    #expect(response.head.headerFields[.contentEncoding] == coding)
    #expect(response.head.headerFields[.contentLength] == "8")
    #expect(try await response.body.collect() == Data("whatever".utf8))
  }

  @Test("codings are removed in reverse order, up to the limit")
  func several() async throws {
    let text = Coded.text(50_000)
    let twice = Coded.encode(Coded.encode(text, .zlib))
    for coding in ["deflate, gzip", "deflate ,identity,gzip", ", deflate,, gzip"] {
      #expect(try await ask(twice, coding, chunks: 900).body.collect() == text)
    }
    let response = try await ask(twice, "deflate, gzip")
    _ = try await response.body.collect()
    #expect(response.metrics().bytesOnWire == Int64(twice.count))
    #expect(response.metrics().bytesDecoded == 50_000)
    let error = await failing(twice, "gzip, gzip, gzip")
    #expect(error?.code == .damagedContentCoding)
    #expect(network.cancelledBodies == 1)
  }

  @Test("several gzip members are one body (RFC 1952 §2.2), with or without zero padding", arguments: [1, 5, 10_000])
  func members(_ chunks: Int) async throws {
    let parts = [Coded.text(2_000), Data(), Coded.text(10), Coded.text(3_000)]
    let encoded = parts.map { Coded.encode($0) }.reduce(Data(), +)
    let whole = parts.reduce(Data(), +)
    #expect(try await ask(encoded, "gzip", chunks: chunks).body.collect() == whole)
    #expect(try await ask(encoded + Data(count: 600), "gzip", chunks: chunks).body.collect() == whole)
  }

  @Test("a coding followed by other bytes is damaged", arguments: ["gzip", "deflate"], [1, 10_000])
  func garbage(_ coding: String, _ chunks: Int) async {
    let encoded = Coded.encode(Data("text".utf8), coding == "gzip" ? .gzip : .zlib)
    #expect(await failing(encoded + Data("garbage".utf8), coding, chunks: chunks)?.code == .damagedContentCoding)
    #expect(await failing(encoded + Data([0x1f, 0x00, 0x00]), coding, chunks: chunks)?.code == .damagedContentCoding)
  }

  @Test("a coding that ends too early is truncated at every position")
  func truncated() async {
    for format in Coded.Format.allCases {
      let encoded = Coded.encode(Coded.text(2_000), format)
      for count in stride(from: 1, to: encoded.count, by: 37) + [2, encoded.count - 1] {
        let error = await failing(encoded.prefix(count), format == .gzip ? "gzip" : "deflate")
        #expect(error?.code == .truncatedBody, "\(format) \(count)")
      }
    }
    let member = Coded.encode(Data("text".utf8))
    #expect(await failing(member + member.prefix(5), "gzip")?.code == .truncatedBody)
  }

  @Test("every damaged byte is detected if the format has a checksum", arguments: [Coded.Format.gzip, .zlib])
  func damaged(_ format: Coded.Format) async throws {
    let text = Coded.text(300)
    let encoded = Coded.encode(text, format)
    let coding = format == .gzip ? "gzip" : "deflate"
    // The time, flags and system in the header say nothing about the bytes.
    for index in encoded.indices where format != .gzip || index < 3 || index > 9 {
      var damaged = encoded
      damaged[index] ^= 0x10
      let result = try? await ask(damaged, coding).body.collect()
      #expect(result == nil || result == text, "byte \(index)")
    }
    var length = encoded
    length[encoded.count - 1] ^= 1
    #expect(await failing(length, coding)?.code == .damagedContentCoding)
    #expect(await failing(Data("plain text".utf8), coding)?.code == .damagedContentCoding)
  }

  @Test("a damaged coding stops the transfer, and its error is repeated")
  func stops() async throws {
    let response = try await ask(Data("plain text, and more of it".utf8), "gzip", chunks: 4)
    for _ in 0..<2 {
      #expect(await failure { _ = try await response.body.source.next() }?.code == .damagedContentCoding)
    }
    #expect(network.cancelledBodies == 1)
  }

  @Test("a decoder works in small steps: a few KB that decode to 16 MB are not decoded at once")
  func steps() async throws {
    let encoded = Coded.encode(Data(count: 16 << 20))
    #expect(encoded.count < 20_000)
    let response = try await ask(encoded, "gzip", chunks: 1 << 20)
    var total = 0
    for try await chunk in response.body {
      #expect(chunk.count <= DecodingLimits.step)
      total += chunk.count
    }
    #expect(total == 16 << 20)
  }

  @Test("a limit is exact to the byte, and earlier bytes are returned")
  func limit() async throws {
    let text = Coded.text(200_000)
    #expect(try await ask(Coded.encode(text), "gzip", limits: DecodingLimits(limit: 200_000)).body.collect() == text)
    let response = try await ask(Coded.encode(text), "gzip", limits: DecodingLimits(limit: 199_999))
    var received = 0
    let error = await failure { for try await chunk in response.body { received += chunk.count } }
    #expect(error?.code == .bodyTooLarge)
    #expect(error?.reason.contains("199999") == true)
    #expect(received > 199_999 - DecodingLimits.step && received <= 199_999)
  }

  @Test("a limit applies between two codings, so that a bomb of padding is not decoded")
  func inside() async {
    let inner = Coded.encode(Data("tiny".utf8)) + Data(count: 8 << 20)
    #expect(await failing(Coded.encode(inner), "gzip, gzip", limits: DecodingLimits(limit: 1 << 20))?.code == .bodyTooLarge)
  }

  @Test("a maximum ratio applies to all codings together")
  func ratio() async throws {
    let bomb = Data(count: 8 << 20)
    let twice = Coded.encode(Coded.encode(bomb))
    let error = await failing(twice, "gzip, gzip", limits: DecodingLimits(ratio: 1_100))
    #expect(error?.code == .bodyTooLarge)
    #expect(error?.reason.contains("1100") == true)
    #expect(await failing(Coded.encode(bomb), "gzip", limits: DecodingLimits(ratio: 1_100)) == nil)
    #expect(await failing(Coded.encode(bomb), "gzip", limits: DecodingLimits(ratio: 50))?.code == .bodyTooLarge)
    let short = Data(count: 100_000)
    #expect(await failing(Coded.encode(short), "gzip", limits: DecodingLimits(ratio: 2)) == nil)
  }

  @Test("an empty body decodes to an empty body")
  func empty() async throws {
    for coding in ["gzip", "deflate"] { #expect(try await ask(Data(), coding).body.collect().isEmpty) }
  }

  @Test("an error of the engine is passed on, and a cancellation ends the body")
  func passedOn() async throws {
    let encoded = Coded.encode(Coded.text(10_000))
    network.respond(
      to: url, with: .response(.ok, fields: [.contentEncoding: "gzip"], body: encoded).chunked(by: 500).cut(after: 2_000))
    let cut = try await network.decoding().download(DownloadRequest(head: HTTPRequest(resource: url)))
    let error = await failure { _ = try await cut.body.collect() }
    #expect(error?.code == .truncatedBody)
    #expect(error?.reason.contains("2000 of") == true)

    let response = try await ask(encoded, "gzip", chunks: 500)
    _ = try await response.body.source.next()
    response.body.source.cancel()
    #expect(await failure { _ = try await response.body.source.next() }?.isCancellation == true)
    #expect(network.cancelledBodies == 1)
  }

  @Test("releasing a decoded body stops the transfer")
  func dropped() async throws {
    do {
      let response = try await ask(Coded.encode(Coded.text(10_000)), "gzip", chunks: 500)
      _ = try await response.body.source.next()
    }
    #expect(network.cancelledBodies == 1)
  }

  @Test("downloaders with equal limits and engines are equal")
  func identity() {
    #expect(network.decoding(limit: 5).id == network.decoding(limit: 5).id)
    #expect(network.decoding(limit: 5).id != network.decoding(limit: 5, ratio: 9).id)
  }
}
#endif
