public import HTTPTypes

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// The hooks through which an app observes downloads, and accepts or refuses their responses. Each has a default that does
/// nothing.
///
/// For each request, in this order:
///
/// 1. ``willStart(_:)`` is called with the request as it is sent.
/// 2. ``isValid(_:of:)`` is called with the status of the response.
/// 3. ``mayContinue(_:of:)`` is called with the head of the response, and may refuse it before the body is read.
/// 4. ``received(_:of:)`` is called with each chunk before the reader gets it, and may replace or refuse it.
/// 5. ``finished(_:with:)`` is called once for each request that was started.
/// 6. ``decoded(_:count:of:)`` is called after a success, with the body as the reader got it: without content codings, and with
///   the
///    chunks that step 4 replaced.
///
/// Each request has its own calls: a hook that is slow with one request, or refuses it, does not affect another one. The calls
/// for one request never overlap. Those for different requests may.
///
/// To change or refuse a request before it is sent, use a ``RequestInterceptor``.
///
/// ```swift
/// final class OnlyImages: DownloaderHooks {
///   func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict {
///     response.headerFields[.contentType]?.hasPrefix("image/") == true ? .proceed : .refuse("not an image")
///   }
/// }
/// ```
///
/// - Important: The hooks are an object that the app owns, so they are held weakly. After the object is released, no more calls
///   are made.
public protocol DownloaderHooks: AnyObject, Sendable {
  /// A request is about to be sent. `exchange.request` has every field that the engine adds by its settings.
  func willStart(_ exchange: DownloadExchange)

  /// Whether a response with this status is accepted. Otherwise the download ends with ``CacheError/Code/unacceptableStatus``,
  /// and the body is not read. To refuse a 304 breaks revalidation.
  func isValid(_ status: HTTPResponse.Status, of exchange: DownloadExchange) -> Bool

  /// Returns whether the body of this response is wanted.
  func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict

  /// Receives the next bytes of the body, which are never empty.
  ///
  /// - Returns: the bytes for the reader: the given ones, or others of the same number. After
  ///   ``DownloadVerdict/proceedReplacingBody``, any number of bytes, also none.
  /// - Throws: an error that refuses the bytes. It ends the body and stops the transfer.
  func received(_ data: Data, of exchange: DownloadExchange) async throws(CacheError) -> Data

  /// The request has ended: with the head of a response that is complete, or with an error. A body that is released before its
  /// end is a cancellation.
  func finished(_ exchange: DownloadExchange, with result: Result<HTTPResponse, CacheError>)

  /// The reader got the whole body. Called after ``finished(_:with:)``, which has the head.
  ///
  /// - Parameters:
  ///   - body: The bytes as the reader got them, or `nil` if there were more than ``decodedDataLimit``.
  ///   - count: The number of bytes.
  ///   - exchange: The request.
  func decoded(_ body: Data?, count: Int64, of exchange: DownloadExchange)

  /// The largest body in bytes that is kept for ``decoded(_:count:of:)``. The default is 0.
  var decodedDataLimit: Int { get }
}

extension DownloaderHooks {
  /// Does nothing.
  public func willStart(_ exchange: DownloadExchange) {}

  /// Accepts every status.
  public func isValid(_ status: HTTPResponse.Status, of exchange: DownloadExchange) -> Bool { true }

  /// Accepts every response.
  public func mayContinue(_ response: HTTPResponse, of exchange: DownloadExchange) async -> DownloadVerdict { .proceed }

  /// Returns the given bytes.
  public func received(_ data: Data, of exchange: DownloadExchange) async throws(CacheError) -> Data { data }

  /// Does nothing.
  public func finished(_ exchange: DownloadExchange, with result: Result<HTTPResponse, CacheError>) {}

  /// Does nothing.
  public func decoded(_ body: Data?, count: Int64, of exchange: DownloadExchange) {}

  /// Keeps no body.
  public var decodedDataLimit: Int { 0 }
}

/// A hook's decision about a response.
public enum DownloadVerdict: Hashable, Sendable {
  /// The response is accepted, with its bytes as they are received.
  case proceed
  /// The response is accepted, and ``DownloaderHooks/received(_:of:)`` may change the number of bytes. The head loses its
  /// `Content-Length`, and `Accept-Ranges` is `none`, because a part of the server's bytes is no part of the replaced ones.
  case proceedReplacingBody
  /// The response is refused: the body is not read, and the download ends with ``CacheError/Code/refused`` and this reason.
  case refuse(String)
}
