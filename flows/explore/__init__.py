"""An explorer of cubes in the browser: functions that answer in JSON, and one page over a server or over files."""
