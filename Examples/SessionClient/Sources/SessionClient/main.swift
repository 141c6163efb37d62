// CacheNetworking without the other modules: a session of one's own, a downloader, and hooks.
// `swift run --package-path Examples/SessionClient SessionClient`
import CacheNetworking
import Foundation
import HTTPTypes

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

func expect(_ isTrue: Bool, _ what: String) {
  print(isTrue ? "  as expected: \(what)" : "  WRONG, expected: \(what)")
  if !isTrue { exit(1) }
}

/// The part of an app that shows the weather. Its hooks do not retain it.
final class WeatherScreen: Sendable {
  let downloader: SessionDownloader

  init(_ platform: URLSessionConfiguration) {
    downloader = SessionDownloader(platform: platform)
    downloader.hooks = DownloaderHooks {
      $0.onValidStatusCode.delegate(on: self) { (screen, exchange) in screen.accepts(exchange.response) }
      $0.onBodyReceived.delegate(on: self) { (screen, exchange) in screen.decoded(exchange.data) }
      $0.onDownloadingFinished.delegate(on: self) { (_, exchange) in
        print("  \(exchange.request.path ?? "") ended: \(exchange.error?.reason ?? "complete")")
      }
    }
  }

  func accepts(_ response: HTTPResponse?) -> Bool { response?.status == .ok }
  func decoded(_ data: Data) -> Data { Data(data.reversed()) }

  func report(_ url: URL, as handle: DownloadTask = DownloadTask()) async throws(CacheError) -> String {
    let request = DownloadRequest(head: try HTTPRequest(resource: url))
    let response = try await downloader.download(request, as: handle)
    return String(decoding: try await response.body.collect(), as: UTF8.self)
  }
}

func run(_ now: URL, _ tomorrow: URL) async throws {
  let platform = URLSessionConfiguration.ephemeral
  platform.protocolClasses = [StationProtocol.self]

  print("A session of one's own, with a SessionDelegate")
  let delegate = SessionDelegate()
  let session = URLSession(configuration: platform, delegate: delegate, delegateQueue: nil)
  let transfer = try delegate.start(URLRequest(url: now), in: session)
  let response = try await transfer.response()
  expect(response.head.status == .ok && response.head.headerFields[.eTag] == "\"7\"", "the head of the response")
  expect(try await response.body.collect().count == 19, "19 bytes, as the station sends them")
  expect(transfer.hasEnded && delegate.transfers.isEmpty, "the transfer has left the table")
  session.finishTasksAndInvalidate()

  print("A downloader whose hooks belong to a screen")
  var screen: WeatherScreen? = WeatherScreen(platform)
  expect(try await screen?.report(now) == "21 degrees, no wind", "the report, as the hook decodes it")
  do throws(CacheError) {
    _ = try await screen?.report(tomorrow)
    expect(false, "an error")
  } catch {
    expect(error.code == .unacceptableStatus && error.status == 404, "the hook accepts no 404")
  }

  print("A handle that is cancelled before its download begins")
  let handle = DownloadTask()
  handle.cancel()
  do throws(CacheError) {
    _ = try await screen?.report(now, as: handle)
    expect(false, "an error")
  } catch {
    expect(error.isCancellation, "no request is sent")
  }

  print("The screen is closed")
  weak var observed: WeatherScreen?
  observed = screen
  let downloader = screen?.downloader
  screen = nil
  expect(observed == nil && downloader?.hooks.onBodyReceived.isSet == false, "the downloader does not retain it")
  do throws(CacheError) {
    _ = try await downloader?.download(DownloadRequest(head: try HTTPRequest(resource: now)))
    expect(false, "an error")
  } catch {
    expect(error.code == .refused, "no bytes pass without the hook that decodes them")
  }
}

guard let now = URL(string: "http://station.example/now"), let tomorrow = URL(string: "http://station.example/tomorrow") else {
  exit(1)
}
do {
  try await run(now, tomorrow)
} catch {
  print(error)
  exit(1)
}
