alter type trade.status add value 'shipped';
