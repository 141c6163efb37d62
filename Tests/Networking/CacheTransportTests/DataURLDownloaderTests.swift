import CacheCore
import CacheTransport
import HTTPTypes
import Testing

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

@Suite("data: URLs (RFC 2397)")
struct DataURLDownloaderTests {
  private func download(_ path: String, scheme: String = "data") async throws -> DownloadResponse {
    let head = HTTPRequest(method: .get, scheme: scheme, authority: nil, path: path)
    return try await DataURLDownloader().download(DownloadRequest(head: head))
  }

  @Test(
    "a data URL contains its bytes, percent-encoded or in Base64",
    arguments: [
      (",A%20brief%20note", "A brief note"), (",", ""), ("text/plain,a,b,,c", "a,b,,c"), (",%C3%A9", "é"), (",100%", "100%"),
      (",%4", "%4"), (",%zz", "%zz"), (",%+1", "%+1"), (",%41%4a%4A", "AJJ"), (",a+b", "a+b"),
      (";base64,SGVsbG8=", "Hello"), (";base64,SGVsbG8", "Hello"), (";base64,SGVs bG8%3D", "Hello"),
      (";base64,SGVs%0D%0AbG8=", "Hello"), (";BASE64,SGVsbG8=", "Hello"), (";base64,", ""), (";base64,SGVsbG8h", "Hello!"),
    ])
  func bytes(_ path: String, _ text: String) async throws {
    let response = try await download(path)
    #expect(response.head.status == .ok)
    #expect(try await response.body.collect() == Data(text.utf8))
    #expect(response.head.headerFields[.contentLength] == String(text.utf8.count))
    #expect(response.head.headerFields[.cacheControl] == "no-store")
  }

  @Test(
    "a data URL states its type, and the default is US-ASCII text",
    arguments: [
      (",a", "text/plain;charset=US-ASCII"), (";base64,YQ==", "text/plain;charset=US-ASCII"),
      (";charset=utf-8,a", "text/plain;charset=utf-8"), ("image/png;base64,YQ==", "image/png"), ("text/html,a", "text/html"),
      ("text/html;charset=utf-8;base64,YQ==", "text/html;charset=utf-8"),
    ])
  func types(_ path: String, _ type: String) async throws {
    #expect(try await download(path).head.headerFields[.contentType] == type)
  }

  @Test(
    "a malformed data URL is an error with the reason",
    arguments: [
      ("text/plain", "comma"), ("", "comma"), (";base64,%%%", "Base64"), (";base64,a", "Base64"), (";base64,é", "Base64"),
    ])
  func malformed(_ path: String, _ word: String) async {
    let error = await failure { _ = try await download(path) }
    #expect(error?.code == .invalidURL)
    #expect(error?.reason.contains(word) == true)
  }

  @Test("only the scheme data is accepted, in any case")
  func schemes() async throws {
    #expect(await failure { _ = try await download(",a", scheme: "http") }?.code == .unsupportedScheme)
    #expect(try await download(",a", scheme: "DATA").body.collect() == Data("a".utf8))
  }

  @Test("the data ends at the fragment of the URL")
  func fragment() async throws {
    let url = try #require(URL(string: "data:text/plain,one#two"))
    let response = try await DataURLDownloader().download(DownloadRequest(head: HTTPRequest(resource: url)))
    #expect(try await response.body.collect() == Data("one".utf8))
  }
}
