public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Six places at which an app sees a download, or steps in. Each has a default that does nothing.
///
/// For each request, in this order:
///
/// 1. ``willStart(_:)``: the request as it would go out; may change or refuse it.
/// 2. ``isValid(_:of:)``: the answer's status alone.
/// 3. ``mayContinue(_:of:)``: the answer's head; may refuse it before any byte of the body is taken.
/// 4. ``received(_:of:)``: each chunk, before whoever reads the body gets it; may replace or refuse it.
/// 5. ``finished(_:with:)``: once for each request that got to 1, also when it was refused there.
/// 6. ``decoded(_:of:)``: after a success, the body as it was handed over: its content codings taken off by the engine, its
///    chunks replaced in 4.
///
/// Where several requests share one transfer, each has its own calls: a hook that is slow with one, or refuses it, does not touch
/// the others. Calls of one request never overlap; those of different ones may.
///
/// ```swift
/// final class OnlyPictures: DownloaderHooks {
///   func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict {
///     response.headerFields[.contentType]?.hasPrefix("image/") == true ? .proceed : .refuse("not a picture")
///   }
/// }
/// ```
///
/// - Important: An object that an app owns, so whoever calls it holds it weakly: once it is gone, the rest of its calls are not
///   made.
public protocol DownloaderHooks: AnyObject, Sendable {
  /// A request is about to go out, with every field that the engine adds by its settings.
  ///
  /// - Returns: the request to send: the given one, or another.
  /// - Throws: to refuse it: the download ends with this error, and nothing is sent.
  func willStart(_ exchange: DownloadExchange) async throws(CacheError) -> HTTPRequest

  /// Whether an answer with this status is one. False ends the download with ``CacheError/Code/unacceptableStatus``, its body
  /// unread. A 304 belongs to whoever set the condition: refusing it breaks revalidation.
  func isValid(_ status: HTTPResponse.Status, of exchange: DownloadExchange) -> Bool

  /// Whether this answer's body is wanted.
  func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict

  /// The next bytes of the body, never empty.
  ///
  /// - Returns: the bytes to hand over: the given ones; others of the same number; others of any number, also none, where
  ///   ``mayContinue(_:of:)`` said ``DownloadVerdict/proceedReplacingBody``.
  /// - Throws: to refuse them: the body ends with this error, and its transfer is given up.
  func received(_ data: Data, of exchange: DownloadExchange) async throws(CacheError) -> Data

  /// The request is over: with the answer's head when everything came, else with the error. A body that is let go of before its
  /// end is a cancellation.
  func finished(_ exchange: DownloadExchange, with result: Result<HTTPResponse, CacheError>)

  /// Everything was handed over.
  func decoded(_ body: DecodedBody, of exchange: DownloadExchange)

  /// Bytes up to which a body is kept for ``decoded(_:of:)``; of a longer one it is told the number alone. 0 by default: nothing
  /// is kept.
  var decodedDataLimit: Int { get }
}

extension DownloaderHooks {
  /// The request as it is.
  public func willStart(_ exchange: DownloadExchange) async throws(CacheError) -> HTTPRequest { exchange.request }

  /// Every status: what it means is for whoever asked to say.
  public func isValid(_ status: HTTPResponse.Status, of exchange: DownloadExchange) -> Bool { true }

  /// Every answer.
  public func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict { .proceed }

  /// The bytes as they are.
  public func received(_ data: Data, of exchange: DownloadExchange) async throws(CacheError) -> Data { data }

  /// Nothing.
  public func finished(_ exchange: DownloadExchange, with result: Result<HTTPResponse, CacheError>) {}

  /// Nothing.
  public func decoded(_ body: DecodedBody, of exchange: DownloadExchange) {}

  /// Nothing is kept.
  public var decodedDataLimit: Int { 0 }
}

/// What a hook thinks of an answer's head.
public enum DownloadVerdict: Hashable, Sendable {
  /// Go on, with the bytes as they come.
  case proceed
  /// Go on, and ``DownloaderHooks/received(_:of:)`` may make more or fewer bytes of them: the head loses its `Content-Length`,
  /// and `Accept-Ranges` is `none`, since a part of the server's bytes is no part of these.
  case proceedReplacingBody
  /// Stop: the body is not taken, and the download ends with ``CacheError/Code/refused`` and this reason.
  case refuse(String)
}
