"""What a Java server writes to its log: settings for Log4j, which keeps a few files of 10 MB."""

from __future__ import annotations

FILE = "log4j2.properties"
"""In the server's folder, beside which is that of the logs."""

_FILES = """\
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ../logs/{name}.log
appender.file.filePattern = ../logs/{name}.log.%i
appender.file.filePermissions = rw-------
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd'T'HH:mm:ss.SSSXXX}} %p %m (%c{{1}})%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10 MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


def log_settings(name: str, loggers: str) -> str:
    """Warnings of all, and what the `loggers` say, to `logs/<name>.log`."""
    return _FILES.format(name=name) + loggers


def log_options(name: str) -> tuple[str, ...]:
    """Options of the JVM: where the settings are, and where to write if it crashes."""
    return (
        *("-Dlog4j2.disable.jmx=true", f"-Dlog4j2.configurationFile={FILE}"),
        f"-XX:ErrorFile=../logs/{name}-crash.log",
    )
