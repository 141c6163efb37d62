import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// A weather station inside the process: the requests of a session that uses this class need no network.
final class StationProtocol: URLProtocol {
  override static func canInit(with request: URLRequest) -> Bool { request.url?.host == "station.example" }
  override static func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  override func startLoading() {
    guard let url = request.url else { return }
    let isKnown = url.path == "/now"
    let response = HTTPURLResponse(
      url: url, statusCode: isKnown ? 200 : 404, httpVersion: "HTTP/1.1",
      headerFields: ["Content-Type": "text/plain", "ETag": "\"7\""])
    guard let response else { return }
    client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
    // The station sends its report backwards, as a stand-in for a cipher.
    let report = isKnown ? String("21 degrees, no wind".reversed()) : "no such report"
    client?.urlProtocol(self, didLoad: Data(report.utf8))
    client?.urlProtocolDidFinishLoading(self)
  }

  override func stopLoading() {}
}
